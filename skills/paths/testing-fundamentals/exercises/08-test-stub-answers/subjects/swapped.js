async function advice(city, weather) {
  try {
    const degrees = await weather.temperature(city);
    return degrees < 10 ? 'A shirt will do' : 'Take a coat';
  } catch {
    return 'Look out of the window';
  }
}
