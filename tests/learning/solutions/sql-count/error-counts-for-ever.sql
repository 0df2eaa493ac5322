WITH RECURSIVE numbers (n) AS (
  SELECT 1
  UNION ALL
  SELECT n + 1 FROM numbers
)
SELECT COUNT(*), 6, 4 FROM numbers;
