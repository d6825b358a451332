/* JavaScript: objects with methods, closures over arrays, text, numbers in typed arrays. */
#include "kernel.h"
#include <quickjs.h>

/* Runs `work(rounds, size)` of a script in a runtime of its own; it returns an integer. */
static uint64_t script(const char *text, uint64_t rounds, int size)
{
    JSRuntime *runtime = JS_NewRuntime();
    REQUIRE(runtime);
    // Without what asks for the time: nobody grants that here.
    JSContext *context = JS_NewContextRaw(runtime);
    REQUIRE(context);
    JS_AddIntrinsicBaseObjects(context);
    JS_AddIntrinsicEval(context);
    JS_AddIntrinsicRegExp(context);
    JS_AddIntrinsicJSON(context);
    JS_AddIntrinsicTypedArrays(context);
    JSValue work = JS_Eval(context, text, strlen(text), "workload", JS_EVAL_TYPE_GLOBAL);
    REQUIRE(JS_IsFunction(context, work));
    JSValue arguments[] = {JS_NewInt64(context, (int64_t)rounds), JS_NewInt32(context, size)};
    JSValue outcome = JS_Call(context, work, JS_UNDEFINED, 2, arguments);
    int64_t result;
    REQUIRE(!JS_IsException(outcome) && JS_ToInt64(context, &result, outcome) == 0);
    JS_FreeValue(context, outcome);
    JS_FreeValue(context, work);
    JS_FreeContext(context);
    JS_FreeRuntime(runtime);
    return mix(1, (uint64_t)result);
}

WORKLOAD(objects)
{
    return script("(function (rounds, size) {\n"
                  "  class Shape { constructor(w) { this.w = w; } area() { return 0; } }\n"
                  "  class Square extends Shape { area() { return this.w * this.w; } }\n"
                  "  class Strip extends Shape { constructor(w, h) { super(w); this.h = h; } area() { return this.w * this.h; } }\n"
                  "  let sum = 0;\n"
                  "  for (let i = 0; i < rounds; i++) {\n"
                  "    const s = i & 1 ? new Square(i % 17) : new Strip(i % 13, i % 7);\n"
                  "    sum += s.area();\n"
                  "  }\n"
                  "  return sum;\n"
                  "})",
                  part(AMOUNT(1200000, 400), permille), 0);
}

WORKLOAD(closures)
{
    return script("(function (rounds, size) {\n"
                  "  let sum = 0;\n"
                  "  for (let round = 0; round < rounds; round++) {\n"
                  "    const list = Array.from({ length: size }, (_, i) => (i * 7919 + round) % 10007);\n"
                  "    list.sort((a, b) => a - b);\n"
                  "    sum += list.map(x => x * 2).filter(x => x % 3 === 0).reduce((a, b) => a + b, 0);\n"
                  "  }\n"
                  "  return sum;\n"
                  "})",
                  part(30, permille), AMOUNT(8000, 60));
}

WORKLOAD(text)
{
    return script("(function (rounds, size) {\n"
                  "  let words = 0;\n"
                  "  for (let round = 0; round < rounds; round++) {\n"
                  "    const lines = [];\n"
                  "    for (let i = 0; i < size; i++) lines.push(`line ${i}: key${i % 37}=value${i * round % 91};`);\n"
                  "    const joined = lines.join('\\n');\n"
                  "    for (const m of joined.matchAll(/key(\\d+)=(\\w+);/g)) words += m[1].length + m[2].length;\n"
                  "    words += JSON.stringify(JSON.parse(JSON.stringify({ lines, round }))).length;\n"
                  "  }\n"
                  "  return words;\n"
                  "})",
                  part(160, permille), AMOUNT(800, 10));
}

WORKLOAD(numbers)
{
    return script("(function (rounds, size) {\n"
                  "  const n = size, a = new Float64Array(n * n), b = new Float64Array(n * n);\n"
                  "  for (let i = 0; i < n * n; i++) { a[i] = i % 11; b[i] = i % 7; }\n"
                  "  let sum = 0;\n"
                  "  for (let round = 0; round < rounds; round++) {\n"
                  "    for (let i = 0; i < n; i++) for (let j = 0; j < n; j++) {\n"
                  "      let s = 0;\n"
                  "      for (let k = 0; k < n; k++) s += a[i * n + k] * b[k * n + j];\n"
                  "      sum += s;\n"
                  "    }\n"
                  "    const sieve = new Uint8Array(n * 700);\n"
                  "    for (let i = 2; i < sieve.length; i++) {\n"
                  "      if (sieve[i]) continue;\n"
                  "      sum += i;\n"
                  "      for (let j = 2 * i; j < sieve.length; j += i) sieve[j] = 1;\n"
                  "    }\n"
                  "  }\n"
                  "  return sum;\n"
                  "})",
                  part(20, permille), AMOUNT(64, 3));
}
