const wait = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

test('rings once, after two minutes', async () => {
  let rung = 0;
  eggTimer(2, () => {
    rung += 1;
  });

  await wait(2 * 60 * 1000 - 1);
  expect(rung).toBe(0);
  await wait(1);
  expect(rung).toBe(1);
  await wait(60 * 60 * 1000);
  expect(rung).toBe(1);
});
