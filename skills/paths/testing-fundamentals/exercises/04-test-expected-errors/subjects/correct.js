function withdraw(balance, amount) {
  if (amount > balance) {
    throw new RangeError('not enough money');
  }
  return balance - amount;
}
