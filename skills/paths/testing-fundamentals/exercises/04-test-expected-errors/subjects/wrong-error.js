function withdraw(balance, amount) {
  if (amount > balance) {
    throw new TypeError('amount.toFixd is not a function');
  }
  return balance - amount;
}
