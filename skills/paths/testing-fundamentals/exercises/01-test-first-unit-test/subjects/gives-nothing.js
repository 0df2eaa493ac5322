function total(price, count) {
  price * count;
}
