function shipping(order) {
  if (order.total < 0) throw new RangeError('no');
  return new Number((order.total < 50 ? 5 : 0) + (order.kilos > 20 ? 10 : 0) + (order.express ? 8 : 0));
}
