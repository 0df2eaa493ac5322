function shipping(order) {
  if (order.total >= 50) return 0;
  return 5;
}
