expect(total(3, 4)).toBe(12);
