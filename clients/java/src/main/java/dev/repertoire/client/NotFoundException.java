package dev.repertoire.client;

/** There is no such skill, version, session, or tool. */
public final class NotFoundException extends RepertoireException {
  private static final long serialVersionUID = 1L;

  NotFoundException(Told told) {
    super(told);
  }
}
