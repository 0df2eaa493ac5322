// What a file of tests calls: `test`, `describe`, `expect`, `jest`. A test is registered and
// judged by the sandbox, which asks only whether its function throws, rejects or never
// settles; what is here decides when to throw.
({ register, group, hook, show, timers, before, after }) => {
  const { defineProperty, freeze, getPrototypeOf, is } = Object;
  const tagOf = (value) => Object.prototype.toString.call(value).slice(8, -1);
  const has = (object, key) => Object.prototype.hasOwnProperty.call(object, key);
  const isObject = (value) => value !== null && (typeof value === 'object' || typeof value === 'function');
  const isEnumerable = (object, key) => Object.prototype.propertyIsEnumerable.call(object, key);

  class AssertionError extends Error {}
  defineProperty(AssertionError.prototype, 'name', { value: 'AssertionError' });
  const fail = (message) => { throw new AssertionError(message); };

  const keysOf = (object) =>
    Reflect.ownKeys(object).filter((key) => isEnumerable(object, key));

  // Values that stand for others: `expect.any(Number)`.
  class Like {
    constructor(name, accepts) {
      this.name = name;
      this.accepts = accepts;
    }
  }

  const equal = (a, b, strict, pairs = []) => {
    if (b instanceof Like) return b.accepts(a);
    if (a instanceof Like) return a.accepts(b);
    if (is(a, b)) return true;
    if (!isObject(a) || !isObject(b) || typeof a === 'function' || typeof b === 'function') return false;
    const tag = tagOf(a);
    if (tag !== tagOf(b)) return false;
    if (strict && getPrototypeOf(a) !== getPrototypeOf(b)) return false;
    for (const [left, right] of pairs) {
      if (left === a || right === b) return left === a && right === b;
    }
    const inside = [...pairs, [a, b]];
    const same = (left, right) => equal(left, right, strict, inside);
    switch (tag) {
      case 'Date':
        return is(a.getTime(), b.getTime());
      case 'RegExp':
        return a.source === b.source && a.flags === b.flags;
      case 'Error':
        return a.name === b.name && a.message === b.message;
      case 'Number': case 'String': case 'Boolean': case 'BigInt': case 'Symbol':
        return is(a.valueOf(), b.valueOf());
      case 'Promise': case 'WeakMap': case 'WeakSet':
        return false;
      case 'Map': {
        if (a.size !== b.size) return false;
        const rest = [...b];
        for (const [key, value] of a) {
          const at = rest.findIndex(([other, item]) => same(key, other) && same(value, item));
          if (at < 0) return false;
          rest.splice(at, 1);
        }
        return true;
      }
      case 'Set': {
        if (a.size !== b.size) return false;
        const rest = [...b];
        for (const value of a) {
          const at = rest.findIndex((other) => same(value, other));
          if (at < 0) return false;
          rest.splice(at, 1);
        }
        return true;
      }
    }
    if (Array.isArray(a) && a.length !== b.length) return false;
    const counts = (object) => (key) => strict || object[key] !== undefined;
    const left = keysOf(a).filter(counts(a));
    const right = keysOf(b).filter(counts(b));
    return left.length === right.length && left.every((key) => has(b, key) && same(a[key], b[key]));
  };

  // Whether an object has at least what another has.
  const covers = (object, part, pairs = []) => {
    if (part instanceof Like || !isObject(part) || !isObject(object)) return equal(object, part, false);
    if (Array.isArray(part)) {
      return Array.isArray(object) && object.length === part.length
        && part.every((item, index) => covers(object[index], item, pairs));
    }
    if (tagOf(part) !== 'Object') return equal(object, part, false);
    if (pairs.some(([left, right]) => left === object && right === part)) return true;
    const inside = [...pairs, [object, part]];
    return keysOf(part).every((key) => key in object && covers(object[key], part[key], inside));
  };

  const list = (values) => values.map((value) => show(value)).join(', ');
  const need = (condition, message) => { if (!condition) throw new TypeError(message); };
  const number = (value) => typeof value === 'number' || typeof value === 'bigint';
  const callsOf = (received) => {
    need(isObject(received) && received._isMockFunction === true, 'expect needs a mock here: jest.fn() or jest.spyOn()');
    return received.mock.calls;
  };

  const compared = (word, test) => (received, expected) => {
    need(number(received) && number(expected), `expect needs numbers here, received ${show(received)} and ${show(expected)}`);
    return [test(received, expected), `to be ${word} ${show(expected)}`];
  };

  const find = (object, path) => {
    const keys = Array.isArray(path) ? path : String(path).replace(/\[(\w+)\]/g, '.$1').split('.');
    let value = object;
    for (const key of keys) {
      if (value === null || value === undefined || !(key in Object(value))) return [false, undefined];
      value = value[key];
    }
    return [true, value];
  };

  const thrownBy = (received, settled) => {
    if (settled) return [true, received];
    need(typeof received === 'function', 'expect needs a function here: expect(() => …).toThrow()');
    try {
      received();
    } catch (error) {
      return [true, error];
    }
    return [false, undefined];
  };

  const textOf = (error) => (isObject(error) && 'message' in error ? String(error.message) : String(error));

  // Each gives whether it holds, how it reads after "expected … ", and what to say instead.
  const matchers = {
    __proto__: null,
    toBe(received, expected) {
      const hint = equal(received, expected, true) ? ': equal, but not the same object (toEqual compares what is in it)' : '';
      return [is(received, expected), `to be ${show(expected)}`, `expected ${show(expected)}, received ${show(received)}${hint}`];
    },
    toEqual: (received, expected) =>
      [equal(received, expected, false), `to equal ${show(expected)}`, `expected ${show(expected)}, received ${show(received)}`],
    toStrictEqual(received, expected) {
      const hint = equal(received, expected, false) ? ': types or undefined properties differ' : '';
      return [equal(received, expected, true), `to equal ${show(expected)}`, `expected ${show(expected)}, received ${show(received)}${hint}`];
    },
    toBeNull: (received) => [received === null, 'to be null'],
    toBeUndefined: (received) => [received === undefined, 'to be undefined'],
    toBeDefined: (received) => [received !== undefined, 'to be defined'],
    toBeTruthy: (received) => [!!received, 'to be truthy'],
    toBeFalsy: (received) => [!received, 'to be falsy'],
    toBeNaN: (received) => [Number.isNaN(received), 'to be NaN'],
    toContain(received, item) {
      if (typeof received === 'string') return [received.includes(String(item)), `to contain ${show(item)}`];
      need(isObject(received) && Symbol.iterator in received, `expect needs a list or a text here, received ${show(received)}`);
      return [[...received].includes(item), `to contain ${show(item)}`];
    },
    toContainEqual: (received, item) =>
      [[...received].some((each) => equal(each, item, false)), `to contain an equal of ${show(item)}`],
    toHaveLength(received, length) {
      need(received !== null && received !== undefined && number(received.length), `expect needs something that has a length here, received ${show(received)}`);
      return [received.length === length, `to have length ${show(length)}, not ${show(received.length)}`];
    },
    toHaveProperty(received, path, ...expected) {
      const [found, value] = find(received, path);
      if (expected.length === 0) return [found, `to have property ${show(path)}`];
      return [found && equal(value, expected[0], false), `to have property ${show(path)} with ${show(expected[0])}`];
    },
    toMatch(received, pattern) {
      need(typeof received === 'string', `expect needs a text here, received ${show(received)}`);
      const matches = typeof pattern === 'string' ? received.includes(pattern) : new RegExp(pattern).test(received);
      return [matches, `to match ${typeof pattern === 'string' ? show(pattern) : String(pattern)}`];
    },
    toMatchObject: (received, part) => [covers(received, part), `to match ${show(part)}`],
    toThrow(received, expected, settled) {
      const [thrown, error] = thrownBy(received, settled);
      const what = thrown ? `it threw ${show(error)}` : 'it threw nothing';
      const say = (wanted) => `expected it to throw ${wanted}, but ${what}`;
      const reads = (wanted) => `to throw ${wanted}`;
      const result = (holds, wanted) => [thrown && holds, reads(wanted), say(wanted)];
      if (expected === undefined) return result(true, 'an error');
      if (typeof expected === 'string') return result(thrown && textOf(error).includes(expected), `an error with ${show(expected)}`);
      if (typeof expected === 'function') return result(error instanceof expected, `a ${expected.name}`);
      if (tagOf(expected) === 'RegExp') return result(thrown && new RegExp(expected).test(textOf(error)), `an error that matches ${String(expected)}`);
      return result(thrown && textOf(error) === textOf(expected), `an error with the message ${show(textOf(expected))}`);
    },
    toBeGreaterThan: compared('greater than', (a, b) => a > b),
    toBeGreaterThanOrEqual: compared('at least', (a, b) => a >= b),
    toBeLessThan: compared('less than', (a, b) => a < b),
    toBeLessThanOrEqual: compared('at most', (a, b) => a <= b),
    toBeCloseTo(received, expected, digits = 2) {
      need(number(received) && number(expected), `expect needs numbers here, received ${show(received)}`);
      const close = received === expected || Math.abs(received - expected) < 10 ** -digits / 2;
      return [close, `to be close to ${show(expected)}`];
    },
    toBeInstanceOf(received, type) {
      need(typeof type === 'function', 'expect needs a class here');
      return [received instanceof type, `to be an instance of ${type.name}`];
    },
    toHaveBeenCalled: (received) => [callsOf(received).length > 0, 'to have been called'],
    toHaveBeenCalledTimes(received, times) {
      const { length } = callsOf(received);
      return [length === times, `to have been called ${show(times)} times, not ${length}`];
    },
    toHaveBeenCalledWith(received, ...expected) {
      const calls = callsOf(received);
      const said = calls.length === 0 ? 'it was not called' : `it was called with ${calls.map((call) => `(${list(call)})`).join(', ')}`;
      return [calls.some((call) => equal(call, expected, false)), `to have been called with (${list(expected)}), but ${said}`];
    },
    toHaveBeenLastCalledWith(received, ...expected) {
      const last = callsOf(received).at(-1);
      const said = last === undefined ? 'it was not called' : `it was called with (${list(last)})`;
      return [last !== undefined && equal(last, expected, false), `to have been last called with (${list(expected)}), but ${said}`];
    },
    toHaveBeenNthCalledWith(received, nth, ...expected) {
      const call = callsOf(received)[nth - 1];
      const said = call === undefined ? 'it was not' : `it was called with (${list(call)})`;
      return [call !== undefined && equal(call, expected, false), `to have been called with (${list(expected)}) at call ${nth}, but ${said}`];
    },
    toHaveReturnedWith: (received, expected) =>
      [callsOf(received) && received.mock.results.some(({ type, value }) => type === 'return' && equal(value, expected, false)), `to have returned ${show(expected)}`],
  };
  matchers.toThrowError = matchers.toThrow;
  matchers.toBeCalled = matchers.toHaveBeenCalled;
  matchers.toBeCalledTimes = matchers.toHaveBeenCalledTimes;
  matchers.toBeCalledWith = matchers.toHaveBeenCalledWith;

  let made = 0;
  let wanted = null;

  const judge = (name, received, negated, args, settled) => {
    if (name === 'toThrow' || name === 'toThrowError') args = [args[0], settled];
    const [holds, reads, instead] = matchers[name](received, ...args);
    if (!!holds === negated) {
      if (!negated && instead !== undefined) fail(instead);
      const subject = typeof received === 'function' && received._isMockFunction ? received.getMockName() : show(received);
      fail(`expected ${subject} ${negated ? 'not ' : ''}${reads}`);
    }
  };

  const awaited = async (received, mode) => {
    need(isObject(received) && typeof received.then === 'function', `expect needs a promise before .${mode}, received ${show(received)}`);
    let value;
    let rejected = false;
    try {
      value = await received;
    } catch (error) {
      rejected = true;
      value = error;
    }
    if (rejected && mode === 'resolves') fail(`expected the promise to resolve, but it rejected with ${show(value)}`);
    if (!rejected && mode === 'rejects') fail(`expected the promise to reject, but it resolved to ${show(value)}`);
    return value;
  };

  const assertion = (received, negated, mode) => {
    const object = { __proto__: null };
    for (const name of Reflect.ownKeys(matchers)) {
      object[name] = mode === ''
        ? (...args) => { made += 1; judge(name, received, negated, args, false); }
        : async (...args) => {
          made += 1;
          const value = await awaited(received, mode);
          judge(name, value, negated, args, mode === 'rejects');
        };
    }
    const more = (name, get) => defineProperty(object, name, { get, enumerable: true });
    if (!negated) more('not', () => assertion(received, true, mode));
    if (mode === '') {
      more('resolves', () => assertion(received, negated, 'resolves'));
      more('rejects', () => assertion(received, negated, 'rejects'));
    }
    return freeze(object);
  };

  const expect = (received) => assertion(received, false, '');
  expect.any = (type) => new Like('any', (value) => {
    switch (type) {
      case Number: return typeof value === 'number';
      case String: return typeof value === 'string';
      case Boolean: return typeof value === 'boolean';
      case BigInt: return typeof value === 'bigint';
      case Symbol: return typeof value === 'symbol';
      case Function: return typeof value === 'function';
      case Object: return typeof value === 'object';
      default: return value instanceof type;
    }
  });
  expect.anything = () => new Like('anything', (value) => value !== null && value !== undefined);
  expect.objectContaining = (part) => new Like('objectContaining', (value) =>
    isObject(value) && keysOf(part).every((key) => key in value && equal(value[key], part[key], false)));
  expect.arrayContaining = (items) => new Like('arrayContaining', (value) =>
    Array.isArray(value) && items.every((item) => value.some((each) => equal(each, item, false))));
  expect.stringContaining = (part) => new Like('stringContaining', (value) =>
    typeof value === 'string' && value.includes(part));
  expect.stringMatching = (pattern) => new Like('stringMatching', (value) =>
    typeof value === 'string' && new RegExp(pattern).test(value));
  expect.closeTo = (expected, digits = 2) => new Like('closeTo', (value) =>
    typeof value === 'number' && Math.abs(value - expected) < 10 ** -digits / 2);
  expect.assertions = (count) => { wanted = (made) => made === count || `expected ${count} assertions, but ${made} were made`; };
  expect.hasAssertions = () => { wanted = (made) => made > 0 || 'expected an assertion, but none was made'; };

  const mocks = new Set();

  const mockOf = (original, restore) => {
    let implementation = original;
    let once = [];
    let title = 'the mock';
    const mock = function (...args) {
      mock.mock.calls.push(args);
      mock.mock.instances.push(this);
      mock.mock.lastCall = args;
      const result = { type: 'incomplete', value: undefined };
      mock.mock.results.push(result);
      const call = once.length > 0 ? once.shift() : implementation;
      try {
        result.value = call === undefined ? undefined
          : new.target ? Reflect.construct(call, args, new.target) : call.apply(this, args);
        result.type = 'return';
        return result.value;
      } catch (error) {
        result.type = 'throw';
        result.value = error;
        throw error;
      }
    };
    const clear = () => { mock.mock = { calls: [], results: [], instances: [], lastCall: undefined }; return mock; };
    const set = (call) => { implementation = call; return mock; };
    const next = (call) => { once.push(call); return mock; };
    const methods = {
      _isMockFunction: true,
      getMockName: () => title,
      getMockImplementation: () => implementation,
      mockName: (name) => { title = name; return mock; },
      mockClear: clear,
      mockReset: () => { once = []; implementation = undefined; return clear(); },
      mockRestore: () => { once = []; implementation = original; clear(); restore(); },
      mockImplementation: set,
      mockImplementationOnce: next,
      mockReturnThis: () => set(function () { return this; }),
      mockReturnValue: (value) => set(() => value),
      mockReturnValueOnce: (value) => next(() => value),
      mockResolvedValue: (value) => set(() => Promise.resolve(value)),
      mockResolvedValueOnce: (value) => next(() => Promise.resolve(value)),
      mockRejectedValue: (error) => set(() => Promise.reject(error)),
      mockRejectedValueOnce: (error) => next(() => Promise.reject(error)),
    };
    for (const name of Object.keys(methods)) defineProperty(mock, name, { value: methods[name] });
    defineProperty(mock, 'mock', { writable: true, value: null });
    mocks.add(mock);
    return clear();
  };

  const MOST_TIMERS = 10000;
  const settle = async () => { for (let turn = 0; turn < 10; turn += 1) await null; };
  const allTimers = () => {
    if (!timers.all(MOST_TIMERS)) throw new Error(`after ${MOST_TIMERS} timers there are still more: an interval that is never cleared?`);
  };
  const jest = {
    fn: (implementation) => mockOf(implementation, () => {}),
    isMockFunction: (value) => isObject(value) && value._isMockFunction === true,
    spyOn(object, name) {
      need(isObject(object) && typeof object[name] === 'function', `jest.spyOn needs an object and the name of one of its functions, received ${show(name)}`);
      const original = object[name];
      if (original._isMockFunction) return original;
      const own = has(object, name);
      const spy = mockOf(original, () => {
        if (own) object[name] = original;
        else delete object[name];
      });
      object[name] = spy;
      return spy.mockName(String(name));
    },
    clearAllMocks: () => { for (const mock of mocks) mock.mockClear(); return jest; },
    resetAllMocks: () => { for (const mock of mocks) mock.mockReset(); return jest; },
    restoreAllMocks: () => { for (const mock of mocks) mock.mockRestore(); return jest; },
    useFakeTimers: () => { timers.useFake(); return jest; },
    useRealTimers: () => { timers.useReal(); return jest; },
    advanceTimersByTime: (by) => { timers.advance(Number(by)); },
    advanceTimersByTimeAsync: async (by) => { await settle(); timers.advance(Number(by)); await settle(); },
    advanceTimersToNextTimer: () => { timers.next(); },
    runAllTimers: allTimers,
    runAllTimersAsync: async () => { do { await settle(); allTimers(); await settle(); } while (timers.count() > 0); },
    runOnlyPendingTimers: () => { for (let left = timers.count(); left > 0; left -= 1) timers.next(); },
    clearAllTimers: () => { timers.drop(); },
    getTimerCount: () => timers.count(),
    setSystemTime: (time) => { timers.set(Number(time)); },
  };

  // The older way to wait: a function with a parameter is handed `done`.
  const Waiting = Promise;
  const whenRejected = Function.prototype.call.bind(Promise.prototype.catch);
  const waitsForDone = (call) => {
    if (typeof call !== 'function' || call.length === 0) return call;
    const waits = () => new Waiting((resolve, reject) => {
      const done = (error) => { if (error === undefined || error === null) resolve(); else reject(error); };
      done.fail = (error) => { reject(error ?? new AssertionError('done.fail() was called')); };
      const result = call(done);
      if (result instanceof Waiting) whenRejected(result, reject);
    });
    return defineProperty(waits, 'name', { value: 'waits for done' });
  };

  const each = (call) => (rows) => (name, test) => {
    for (const row of rows) {
      const args = Array.isArray(row) ? row : [row];
      let at = 0;
      const title = String(name).replace(/%[sdifjop]/g, () => {
        const value = args[at];
        at += 1;
        return typeof value === 'string' ? value : show(value);
      });
      call(title, () => test(...args));
    }
  };
  const withMore = (call, add, modes) => {
    for (const mode of modes) call[mode] = (name, test) => add(name, test, mode);
    call.each = each(call);
    return freeze(call);
  };
  const add = (name, test, mode) => register(name, waitsForDone(test), mode);
  const test = withMore((name, test) => add(name, test, ''), add, ['only', 'skip', 'todo']);
  const describe = withMore((name, body) => group(name, body, ''), group, ['only', 'skip']);

  const give = {
    test,
    it: test,
    describe,
    expect: freeze(expect),
    jest: freeze(jest),
    beforeAll: (call) => hook('beforeAll', waitsForDone(call)),
    afterAll: (call) => hook('afterAll', waitsForDone(call)),
    beforeEach: (call) => hook('beforeEach', waitsForDone(call)),
    afterEach: (call) => hook('afterEach', waitsForDone(call)),
  };
  for (const name of Object.keys(give)) defineProperty(globalThis, name, { value: give[name] });
  // Around each test: how many assertions it wanted.
  before(() => { made = 0; wanted = null; });
  after(() => {
    const held = wanted === null || wanted(made);
    if (held !== true) fail(held);
  });
}
