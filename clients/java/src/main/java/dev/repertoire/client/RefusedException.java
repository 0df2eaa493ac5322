package dev.repertoire.client;

/** What was asked is wrong, and would be the next time. */
public final class RefusedException extends RepertoireException {
  private static final long serialVersionUID = 1L;

  RefusedException(Told told) {
    super(told);
  }
}
