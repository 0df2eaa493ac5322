// Runs in a fresh realm before anything else does, and gives the sandbox what it needs of
// it, taken before a stranger could change it. Whatever is called here later is called by
// `apply`, and no list here has a prototype.
(start) => {
  'use strict';
  const { apply, construct } = Reflect;
  const { isArray } = Array;
  const { defineProperty, getOwnPropertyDescriptor } = Object;
  const mapSize = getOwnPropertyDescriptor(Map.prototype, 'size').get;
  const setSize = getOwnPropertyDescriptor(Set.prototype, 'size').get;
  const RealDate = Date;
  const RealMap = Map;
  const RealSet = Set;
  const getTime = Date.prototype.getTime;
  const toText = Date.prototype.toString;
  const then = Promise.prototype.then;
  const settled = Promise.resolve();
  const RealTypeError = TypeError;
  const SyncFunction = Function;
  const AsyncFunction = (async () => {}).constructor;

  const hide = (target, name, value) =>
    defineProperty(target, name, { __proto__: null, value, writable: true, configurable: true, enumerable: false });

  const has = (test, value) => {
    try {
      apply(test, value, []);
      return true;
    } catch {
      return false;
    }
  };

  // Which of the classes that carry what no property shows.
  const kind = (value) =>
    isArray(value) ? 'array' : has(mapSize, value) ? 'map' : has(setSize, value) ? 'set' : has(getTime, value) ? 'date' : '';

  // Whether a text can be read as the body of a function, without running any of it.
  const reads = (source, waits) => {
    try {
      construct(waits ? AsyncFunction : SyncFunction, [source]);
      return true;
    } catch {
      return false;
    }
  };

  // Time stands still, and jumps to the next timer when nothing else is left to do.
  let now = start;
  let count = 0;
  let first = null;
  let fake = false;

  const insert = (timer) => {
    if (first === null || timer.at < first.at) {
      timer.next = first;
      first = timer;
      return;
    }
    let before = first;
    while (before.next !== null && before.next.at <= timer.at) before = before.next;
    timer.next = before.next;
    before.next = timer;
  };

  const remove = (wanted) => {
    let before = null;
    for (let timer = first; timer !== null; before = timer, timer = timer.next) {
      if (wanted(timer)) {
        if (before === null) first = timer.next;
        else before.next = timer.next;
        return;
      }
    }
  };

  const add = (call, delay, list, repeats) => {
    if (typeof call !== 'function') throw new RealTypeError('the callback of a timer must be a function');
    let wait = +delay;
    if (!(wait >= 1 && wait <= 2147483647)) wait = 1;
    wait -= wait % 1;
    count += 1;
    insert({ __proto__: null, id: count, at: now + wait, wait, repeats, call, list, fake, next: null });
    return count;
  };

  const run = () => {
    const timer = first;
    first = timer.next;
    if (timer.at > now) now = timer.at;
    if (timer.repeats) {
      timer.at = now + timer.wait;
      insert(timer);
    }
    apply(timer.call, undefined, timer.list);
  };

  hide(globalThis, 'setTimeout', function setTimeout(call, delay, ...list) {
    return add(call, delay, list, false);
  });
  hide(globalThis, 'setInterval', function setInterval(call, delay, ...list) {
    return add(call, delay, list, true);
  });
  hide(globalThis, 'setImmediate', function setImmediate(call, ...list) {
    return add(call, 0, list, false);
  });
  const clear = (id) => remove((timer) => timer.id === id);
  hide(globalThis, 'clearTimeout', function clearTimeout(id) { clear(id); });
  hide(globalThis, 'clearInterval', function clearInterval(id) { clear(id); });
  hide(globalThis, 'clearImmediate', function clearImmediate(id) { clear(id); });
  hide(globalThis, 'queueMicrotask', function queueMicrotask(call) {
    if (typeof call !== 'function') throw new RealTypeError('the callback of a microtask must be a function');
    apply(then, settled, [() => { call(); }]);
  });

  // A copy of what is data, as deep as it goes.
  hide(globalThis, 'structuredClone', function structuredClone(value) {
    const copies = new RealMap();
    const copy = (value) => {
      if (typeof value === 'function' || typeof value === 'symbol') {
        throw new RealTypeError('a function or a symbol cannot be cloned');
      }
      if (typeof value !== 'object' || value === null) return value;
      if (copies.has(value)) return copies.get(value);
      const keep = (made) => {
        copies.set(value, made);
        return made;
      };
      switch (kind(value)) {
        case 'date':
          return keep(new RealDate(apply(getTime, value, [])));
        case 'map': {
          const made = keep(new RealMap());
          for (const [key, item] of value) made.set(copy(key), copy(item));
          return made;
        }
        case 'set': {
          const made = keep(new RealSet());
          for (const item of value) made.add(copy(item));
          return made;
        }
      }
      if (value instanceof RegExp) return keep(new RegExp(value.source, value.flags));
      if (value instanceof Error) return keep(new value.constructor(value.message));
      const made = keep(isArray(value) ? new Array(value.length) : {});
      for (const key of Object.keys(value)) made[key] = copy(value[key]);
      return made;
    };
    return copy(value);
  });

  // The same for every run: what time it is, and what chance brings.
  const VirtualDate = function Date(...list) {
    if (new.target === undefined) return apply(toText, new RealDate(now), []);
    return construct(RealDate, list.length === 0 ? [now] : list, new.target);
  };
  defineProperty(VirtualDate, 'prototype', { __proto__: null, value: RealDate.prototype, writable: false });
  defineProperty(VirtualDate, 'length', { __proto__: null, value: 7, configurable: true });
  hide(VirtualDate, 'now', function () { return now; });
  hide(VirtualDate, 'parse', RealDate.parse);
  hide(VirtualDate, 'UTC', RealDate.UTC);
  hide(RealDate.prototype, 'constructor', VirtualDate);
  hide(globalThis, 'Date', VirtualDate);

  let seed = 2463534242;
  hide(Math, 'random', function random() {
    seed ^= seed << 13;
    seed ^= seed >>> 17;
    seed ^= seed << 5;
    return (seed >>> 0) / 4294967296;
  });

  // No function gives its source: a stranger's tests must not read what they test.
  defineProperty(Function.prototype, 'toString', {
    __proto__: null,
    value: { toString() {
      if (typeof this !== 'function') throw new RealTypeError('not a function');
      return 'function () { [native code] }';
    } }.toString,
    writable: false,
    configurable: false,
    enumerable: false,
  });

  return {
    __proto__: null,
    kind,
    reads,
    getTime,
    mapForEach: Map.prototype.forEach,
    setForEach: Set.prototype.forEach,
    wellFormed: String.prototype.toWellFormed,
    digits: BigInt.prototype.toString,
    // Runs the next timer: false where there is none.
    step: () => {
      if (first === null || fake) return false;
      run();
      return true;
    },
    // Timers that a test moves by hand.
    timers: {
      __proto__: null,
      useFake: () => { fake = true; },
      useReal: () => {
        fake = false;
        let kept = null;
        let last = null;
        for (let timer = first; timer !== null; timer = timer.next) {
          if (timer.fake) continue;
          if (last === null) kept = timer;
          else last.next = timer;
          last = timer;
        }
        if (last !== null) last.next = null;
        first = kept;
      },
      advance: (by) => {
        const until = now + by;
        while (first !== null && first.at <= until) run();
        now = until;
      },
      // How many were run; as many as `most`.
      all: (most) => {
        let done = 0;
        while (first !== null && done < most) {
          run();
          done += 1;
        }
        return first === null;
      },
      next: () => { if (first !== null) run(); },
      drop: () => { first = null; },
      count: () => {
        let left = 0;
        for (let timer = first; timer !== null; timer = timer.next) left += 1;
        return left;
      },
      isFake: () => fake,
      set: (time) => { now = time; },
    },
  };
}
