function eggTimer(minutes, ring) {
  setTimeout(() => ring(), (minutes + 1) * 60 * 1000);
}
