async function advice(city, weather) {
  try {
    await weather.temperature(city);
    return 'Take a coat';
  } catch {
    return 'Look out of the window';
  }
}
