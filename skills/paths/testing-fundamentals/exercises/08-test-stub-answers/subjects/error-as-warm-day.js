async function advice(city, weather) {
  let degrees;
  try {
    degrees = await weather.temperature(city);
  } catch {
    // goes on without a temperature
  }
  return degrees < 10 ? 'Take a coat' : 'A shirt will do';
}
