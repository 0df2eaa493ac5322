VALUES ('tea', 4, 103), ('pots', 3, 14), ('cups', 2, 54);
