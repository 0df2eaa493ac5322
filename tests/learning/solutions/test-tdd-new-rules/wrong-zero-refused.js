function shipping(order) {
  if (!order.total || order.total < 0) throw new RangeError('no total');
  let cost = order.total >= 50 ? 0 : 5;
  if (order.kilos > 20) cost += 10;
  if (order.express) cost += 8;
  return cost;
}
