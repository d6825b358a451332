// Objects with methods, closures over arrays, text, numbers in typed arrays. Processor time, the fastest of three runs.
import * as os from "qjs:os";

function objects() {
    class Shape { constructor(w) { this.w = w; } area() { return 0; } }
    class Square extends Shape { area() { return this.w * this.w; } }
    class Strip extends Shape { constructor(w, h) { super(w); this.h = h; } area() { return this.w * this.h; } }
    let sum = 0;
    for (let i = 0; i < 400000; i++) {
        const s = i & 1 ? new Square(i % 17) : new Strip(i % 13, i % 7);
        sum += s.area();
    }
    return sum;
}

function closures() {
    let sum = 0;
    for (let round = 0; round < 12; round++) {
        const list = Array.from({ length: 8000 }, (_, i) => (i * 7919 + round) % 10007);
        list.sort((a, b) => a - b);
        sum += list.map(x => x * 2).filter(x => x % 3 === 0).reduce((a, b) => a + b, 0);
    }
    return sum;
}

function text() {
    let words = 0;
    for (let round = 0; round < 25; round++) {
        const lines = [];
        for (let i = 0; i < 800; i++) lines.push(`line ${i}: key${i % 37}=value${i * round % 91};`);
        const joined = lines.join("\n");
        for (const m of joined.matchAll(/key(\d+)=(\w+);/g)) words += m[1].length + m[2].length;
        words += JSON.stringify(JSON.parse(JSON.stringify({ lines, round }))).length;
    }
    return words;
}

function numbers() {
    const n = 64, a = new Float64Array(n * n), b = new Float64Array(n * n);
    for (let i = 0; i < n * n; i++) { a[i] = i % 11; b[i] = i % 7; }
    let sum = 0;
    for (let i = 0; i < n; i++) for (let j = 0; j < n; j++) {
        let s = 0;
        for (let k = 0; k < n; k++) s += a[i * n + k] * b[k * n + j];
        sum += s;
    }
    const sieve = new Uint8Array(300000);
    for (let i = 2; i < sieve.length; i++) { if (sieve[i]) continue; sum += i; for (let j = 2 * i; j < sieve.length; j += i) sieve[j] = 1; }
    return sum;
}

for (const part of [objects, closures, text, numbers]) {
    let best = Infinity;
    for (let run = 0; run < 3; run++) {
        const start = os.cputime();
        part();
        best = Math.min(best, os.cputime() - start);
    }
    console.log(`${part.name} ${best * 1000}`);
}
