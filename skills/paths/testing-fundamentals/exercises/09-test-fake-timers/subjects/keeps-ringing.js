function eggTimer(minutes, ring) {
  setInterval(() => ring(), minutes * 60 * 1000);
}
