SELECT 'tea', COUNT(*), SUM(stock) FROM products WHERE category = 'tea'
UNION ALL SELECT 'pots', COUNT(*), SUM(stock) FROM products WHERE category = 'pots'
UNION ALL SELECT 'cups', COUNT(*), SUM(stock) FROM products WHERE category = 'cups';
