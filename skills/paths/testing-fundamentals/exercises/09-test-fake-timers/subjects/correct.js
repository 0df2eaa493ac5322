function eggTimer(minutes, ring) {
  setTimeout(() => ring(), minutes * 60 * 1000);
}
