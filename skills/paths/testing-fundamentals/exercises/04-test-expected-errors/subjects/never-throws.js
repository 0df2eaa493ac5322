function withdraw(balance, amount) {
  return Math.max(0, balance - amount);
}
