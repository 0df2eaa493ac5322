-- Add Mia Hofer. She joined on 2026-04-01. Her city is unknown.
SELECT name, city, joined_on FROM customers;
