package dev.repertoire.client;

/** This caller may not do it. */
public final class DeniedException extends RepertoireException {
  private static final long serialVersionUID = 1L;

  DeniedException(Told told) {
    super(told);
  }
}
