package dev.repertoire.client;

/** Not now; a later call may succeed. */
public final class UnavailableException extends RepertoireException {
  private static final long serialVersionUID = 1L;

  UnavailableException(Told told) {
    super(told);
  }
}
