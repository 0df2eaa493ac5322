const MINUTE = 60 * 1000;

beforeEach(() => {
  jest.useFakeTimers();
});

afterEach(() => {
  jest.useRealTimers();
});

test('does not ring too early', () => {
  const ring = jest.fn();
  eggTimer(5, ring);

  jest.advanceTimersByTime(5 * MINUTE - 1);

  expect(ring).not.toHaveBeenCalled();
});

test('rings when the time is up', () => {
  const ring = jest.fn();
  eggTimer(5, ring);

  jest.advanceTimersByTime(5 * MINUTE);

  expect(ring).toHaveBeenCalledTimes(1);
});

test('rings only once', () => {
  const ring = jest.fn();
  eggTimer(5, ring);

  jest.advanceTimersByTime(60 * MINUTE);

  expect(ring).toHaveBeenCalledTimes(1);
});
