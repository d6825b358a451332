/* Lua scripts: recursion, tables, strings, objects, sorting, floating point. */
#include "kernel.h"
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

/* Runs a chunk in a state of its own; the chunk gets the number of rounds and the size of one and returns an integer. */
static uint64_t script(const char *text, uint64_t rounds, int size)
{
    lua_State *L = luaL_newstate();
    REQUIRE(L);
    luaL_requiref(L, LUA_GNAME, luaopen_base, 1);
    luaL_requiref(L, LUA_TABLIBNAME, luaopen_table, 1);
    luaL_requiref(L, LUA_STRLIBNAME, luaopen_string, 1);
    luaL_requiref(L, LUA_MATHLIBNAME, luaopen_math, 1);
    REQUIRE(luaL_loadstring(L, text) == LUA_OK);
    lua_pushinteger(L, (lua_Integer)rounds);
    lua_pushinteger(L, size);
    REQUIRE(lua_pcall(L, 2, 1, 0) == LUA_OK);
    uint64_t result = (uint64_t)luaL_checkinteger(L, -1);
    lua_close(L);
    return mix(1, result);
}

WORKLOAD(recursion)
{
    return script("local rounds, size = ...\n"
                  "local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end\n"
                  "local s = 0; for i = 1, rounds do s = s * 3 + fib(size) end; return s",
                  part(150, permille), AMOUNT(22, 9));
}

WORKLOAD(tables)
{
    return script("local rounds, size = ...\n"
                  "local s = 0\n"
                  "for _ = 1, rounds do\n"
                  "  local t, n = {}, size\n"
                  "  for i = 2, n do t[i] = true end\n"
                  "  for i = 2, 200 do if t[i] then for j = i * i, n, i do t[j] = false end end end\n"
                  "  local names = {}\n"
                  "  for i = 2, n, 7 do if t[i] then names['k' .. i % 501] = i end end\n"
                  "  for i = 0, 500 do s = s + (names['k' .. i] or 1) end\n"
                  "end return s",
                  part(130, permille), AMOUNT(40000, 400));
}

WORKLOAD(strings)
{
    return script("local rounds, size = ...\n"
                  "local n = 0\n"
                  "for _ = 1, rounds do\n"
                  "  local t = {}\n"
                  "  for i = 1, size do t[#t + 1] = ('%d:%s'):format(i, ('ab'):rep(i % 9)) end\n"
                  "  local s = table.concat(t, ',')\n"
                  "  for w in s:gmatch('[^,]+') do n = n + #w end\n"
                  "  n = n + #s:gsub('a(b)', '%1'):upper()\n"
                  "end return n",
                  part(120, permille), AMOUNT(3000, 40));
}

WORKLOAD(objects)
{
    return script("local rounds, size = ...\n"
                  "local Point = {}; Point.__index = Point\n"
                  "function Point.new(x, y) return setmetatable({ x = x, y = y }, Point) end\n"
                  "function Point:add(o) return Point.new(self.x + o.x, self.y + o.y) end\n"
                  "local p, q = Point.new(0, 0), Point.new(1, 2)\n"
                  "for _ = 1, rounds do p = p:add(q) end return p.x * 3 + p.y",
                  part(AMOUNT(2400000, 200000), permille), 0);
}

WORKLOAD(sort)
{
    return script("local rounds, size = ...\n"
                  "local s, x = 0, 42\n"
                  "for _ = 1, rounds do\n"
                  "  local t = {}\n"
                  "  for i = 1, size do x = (x * 1103515245 + 12345) % 2147483648; t[i] = x end\n"
                  "  table.sort(t); s = s + t[17]; table.sort(t, function(a, b) return a > b end); s = s * 3 + t[size // 2]\n"
                  "end return s",
                  part(130, permille), AMOUNT(3000, 60));
}

WORKLOAD(matrix)
{
    return script("local rounds, size = ...\n"
                  "local sum = 0\n"
                  "for _ = 1, rounds do\n"
                  "  local n = size; local a, b = {}, {}\n"
                  "  for i = 1, n do a[i], b[i] = {}, {} for j = 1, n do a[i][j], b[i][j] = i + j + 0.5, i - j end end\n"
                  "  for i = 1, n do for j = 1, n do local s = 0.0\n"
                  "    for k = 1, n do s = s + a[i][k] * b[k][j] end\n"
                  "    sum = sum + s end end\n"
                  "end return math.floor(sum)",
                  part(210, permille), AMOUNT(50, 6));
}
