async function advice(city, weather) {
  try {
    const degrees = await weather.temperature('Vienna');
    return degrees < 10 ? 'Take a coat' : 'A shirt will do';
  } catch {
    return 'Look out of the window';
  }
}
