const shipping = (order) => {
  if (order.total < 0) {
    throw new RangeError(`total is ${order.total}`);
  }
  return (order.total < 50 ? 5 : 0) + (order.kilos > 20 ? 10 : 0) + (order.express ? 8 : 0);
};
