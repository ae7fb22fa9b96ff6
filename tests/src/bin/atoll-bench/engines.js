(() => {
  const fib = (n) => (n < 2 ? n : fib(n - 1) + fib(n - 2));
  const lines = Array.from({ length: 20000 }, (_, n) => `line ${n}: user${n % 97}@host${n % 13}.example, ${n * 31 % 1009} items`);
  const records = Array.from({ length: 5000 }, (_, n) => ({ id: n, name: `record ${n}`, tags: ["a", "b", n % 7], at: { x: n / 3, y: -n } }));
  const json = JSON.stringify(records);
  class Point {
    #x;
    constructor(x, y) {
      this.#x = x;
      this.y = y;
    }
    moved(by) {
      return new Point(this.#x + by, this.y - by);
    }
    get sum() {
      return this.#x + this.y;
    }
  }
  const benchmarks = {
    recursion: () => fib(25),
    sieve: () => {
      const composite = new Uint8Array(400000);
      let primes = 0;
      for (let n = 2; n < composite.length; n++) {
        if (composite[n]) continue;
        primes++;
        for (let m = n * 2; m < composite.length; m += n) composite[m] = 1;
      }
      return primes;
    },
    floats: () => {
      let inside = 0;
      for (let y = -60; y < 60; y++) {
        for (let x = -60; x < 60; x++) {
          let [a, b, steps] = [0, 0, 0];
          while (a * a + b * b < 4 && steps < 40) {
            const next = a * a - b * b + x / 40;
            b = 2 * a * b + y / 40;
            a = next;
            steps++;
          }
          if (steps === 40) inside++;
        }
      }
      return inside;
    },
    properties: () => {
      const point = { x: 1, y: 2, z: 3 };
      for (let n = 0; n < 300000; n++) {
        point.x += point.y;
        point.y = point.z - n;
        point.z = point.x & 1023;
      }
      return point.x;
    },
    classes: () => {
      let point = new Point(1, 2);
      let sum = 0;
      for (let n = 0; n < 60000; n++) {
        point = point.moved(1);
        sum += point.sum;
      }
      return sum;
    },
    closures: () => {
      let sum = 0;
      const numbers = Array.from({ length: 1000 }, (_, n) => n);
      for (let n = 0; n < 60; n++) sum += numbers.map((k) => k * n).filter((k) => k % 3 === 0).reduce((a, b) => a + b, 0);
      return sum;
    },
    sort: () => {
      let seed = 42;
      const random = () => (seed = (seed * 1103515245 + 12345) & 0x7fffffff);
      const numbers = Array.from({ length: 30000 }, random).sort((a, b) => a - b);
      return numbers[100];
    },
    maps: () => {
      const counts = new Map();
      for (let n = 0; n < 100000; n++) counts.set(n % 1009, (counts.get(n % 1009) ?? 0) + 1);
      return counts.size + new Set(lines.map((line) => line.length)).size;
    },
    strings: () => {
      let text = "";
      for (let n = 0; n < 100000; n++) text += `${n % 10},`;
      let sum = 0;
      for (let n = 0; n < text.length; n++) sum += text.charCodeAt(n);
      return sum;
    },
    splitting: () => lines.map((line) => line.split(/[ ,:]+/).slice(1, 3).join("-").toUpperCase()).join("\n").replaceAll("USER", "u").length,
    regexps: () => {
      let found = 0;
      for (const line of lines) if (/^line (?<n>\d+): (\w+)@host(?:1|2|3)\.example, \d*7 items$/.test(line)) found++;
      return found;
    },
    json: () => JSON.stringify(JSON.parse(json).filter((record) => record.at.x > 100)).length,
  };
  const times = {};
  for (const [name, run] of Object.entries(benchmarks)) {
    let best = Infinity;
    for (let round = 0; round < ROUNDS; round++) {
      const began = performance.now();
      run();
      best = Math.min(best, performance.now() - began);
    }
    times[name] = best;
  }
  return times;
})()
