function eggTimer(minutes, ring) {
  ring();
}
