VALUES ('Iron Pot', 6500), ('Clay Pot', 3900), ('Glass Pot', 2900);
