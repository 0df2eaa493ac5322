function shipping({ total, kilos = 0, express = false }) {
  if (total < 0) throw new RangeError('a total cannot be below zero');

  let cost = total >= 50 ? 0 : 5;
  if (kilos > 20) cost += 10;
  if (express) cost += 8;
  return cost;
}
