function eggTimer(minutes, ring) {
  setTimeout(() => ring(), minutes * 1000);
}
