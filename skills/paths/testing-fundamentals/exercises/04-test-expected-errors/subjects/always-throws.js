function withdraw(balance, amount) {
  throw new RangeError('not enough money');
}
