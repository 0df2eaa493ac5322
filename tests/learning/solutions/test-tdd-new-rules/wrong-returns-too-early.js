function shipping(order) {
  if (order.total < 0) throw new RangeError('negative');
  if (order.total >= 50) return 0;
  let cost = 5;
  if (order.kilos > 20) cost += 10;
  if (order.express) cost += 8;
  return cost;
}
