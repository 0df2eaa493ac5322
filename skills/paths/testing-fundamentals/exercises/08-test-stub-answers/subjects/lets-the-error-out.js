async function advice(city, weather) {
  const degrees = await weather.temperature(city);
  return degrees < 10 ? 'Take a coat' : 'A shirt will do';
}
