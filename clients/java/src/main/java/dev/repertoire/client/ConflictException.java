package dev.repertoire.client;

/** It is at odds with what there is; read that again. */
public final class ConflictException extends RepertoireException {
  private static final long serialVersionUID = 1L;

  ConflictException(Told told) {
    super(told);
  }
}
