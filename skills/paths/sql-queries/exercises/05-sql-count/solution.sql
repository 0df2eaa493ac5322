SELECT
  COUNT(*) AS customers,
  COUNT(city) AS known_cities,
  COUNT(DISTINCT city) AS different_cities
FROM customers;
