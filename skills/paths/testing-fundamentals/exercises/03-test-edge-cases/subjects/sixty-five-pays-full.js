function ticketPrice(age) {
  if (age <= 5) return 0;
  if (age <= 17) return 5;
  if (age <= 65) return 10;
  return 7;
}
