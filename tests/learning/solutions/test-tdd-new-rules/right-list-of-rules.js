const charges = [
  { when: (order) => order.total < 50, cost: 5 },
  { when: (order) => order.kilos > 20, cost: 10 },
  { when: (order) => order.express, cost: 8 },
];

function shipping(order) {
  if (order.total < 0) throw new RangeError('negative total');
  return charges.filter((charge) => charge.when(order)).reduce((sum, charge) => sum + charge.cost, 0);
}
