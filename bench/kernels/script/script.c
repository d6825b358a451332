/* An interpreter of byte code with a compiler and a collector: sorting, trees, primes and recursion as scripts. */
#include "script.h"

static const char source[] =
    "fn fib(n) { if n < 2 { return n; } return fib(n - 1) + fib(n - 2); }\n"
    "fn noise(count, seed) {\n"
    "  list = nil;\n"
    "  while 0 < count { seed = (seed * 1103 + 12345) % 65536; list = cons(seed, list); count = count - 1; }\n"
    "  return list;\n"
    "}\n"
    "fn reverse(list) {\n"
    "  out = nil;\n"
    "  while pair(list) { out = cons(head(list), out); list = tail(list); }\n"
    "  return out;\n"
    "}\n"
    "fn merge(a, b) {\n"
    "  out = nil;\n"
    "  while pair(a) + pair(b) {\n"
    "    first = not(pair(b));\n"
    "    if pair(a) * pair(b) { first = head(a) < head(b); }\n"
    "    if first { out = cons(head(a), out); a = tail(a); } else { out = cons(head(b), out); b = tail(b); }\n"
    "  }\n"
    "  return reverse(out);\n"
    "}\n"
    "fn sort(list) {\n"
    "  a = nil; b = nil; count = 0; rest = list;\n"
    "  while pair(rest) { c = cons(head(rest), a); a = b; b = c; rest = tail(rest); count = count + 1; }\n"
    "  if count < 2 { return list; }\n"
    "  return merge(sort(a), sort(b));\n"
    "}\n"
    "fn digest(list) {\n"
    "  sum = 7;\n"
    "  while pair(list) { sum = (sum * 31 + head(list)) % 1000003; list = tail(list); }\n"
    "  return sum;\n"
    "}\n"
    "fn plant(tree, key) {\n"
    "  if not(pair(tree)) { return cons(key, cons(nil, nil)); }\n"
    "  if key == head(tree) { return tree; }\n"
    "  left = head(tail(tree)); right = tail(tail(tree));\n"
    "  if key < head(tree) { return cons(head(tree), cons(plant(left, key), right)); }\n"
    "  return cons(head(tree), cons(left, plant(right, key)));\n"
    "}\n"
    "fn walk(tree, list) {\n"
    "  if not(pair(tree)) { return list; }\n"
    "  return walk(head(tail(tree)), cons(head(tree), walk(tail(tail(tree)), list)));\n"
    "}\n"
    "fn primes(limit) {\n"
    "  found = nil; n = 2;\n"
    "  while n < limit {\n"
    "    rest = 2; whole = 1;\n"
    "    while (rest * rest < n + 1) * whole { if n % rest == 0 { whole = 0; } rest = rest + 1; }\n"
    "    if whole { found = cons(n, found); }\n"
    "    n = n + 1;\n"
    "  }\n"
    "  return found;\n"
    "}\n"
    "fn main(size, seed) {\n"
    "  list = noise(size, seed); tree = nil; rest = list;\n"
    "  while pair(rest) { tree = plant(tree, head(rest)); rest = tail(rest); }\n"
    "  sum = digest(sort(list)) + digest(walk(tree, nil)) * 3;\n"
    "  return sum + digest(primes(size)) * 5 + fib(12 + seed % 4) * 7;\n"
    "}\n";

WORKLOAD(script)
{
    uint64_t sum = 1;
    heap_reset();
    instructions_run = 0;
    for (uint64_t round = 0; round < part(AMOUNT(50, 4), permille); round++) {
        compile(source);
        value arguments[] = {INTEGER(AMOUNT(1200, 60) + round % 50), INTEGER(round * 17 + 5)};
        value result = call_function(function_named("main", 4), arguments, 2);
        sum = mix(sum, (uint64_t)integer_of(result));
    }
    return mix(mix(mix(sum, instructions_run), collections), cells_freed);
}
