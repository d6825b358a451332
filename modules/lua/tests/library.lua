-- Numbers, strings, tables, garbage collection: every operator of the interpreter's loop.
print(7 // 2, -7 // 2, 7 % -3, 7.5 // 2, 2 ^ 10, 7 / 2, 1 << 62, -1 >> 60, 5 & 6, 5 | 6, 5 ~ 6, ~5)
print(math.maxinteger + 1 == math.mininteger, 1e308 * 10, -(0 / 0) ~= 0 / 0, 3 | 0, "10" + 5, 10 .. 20)
print(string.format("%5.2f|%-8s|%08d|%x|%q|%g|%a", 3.14159, "left", 42, 255, "q\n\0", 1e100, 0.5))
print(math.type(1), math.type(1.0), math.tointeger(3.0), math.ult(1, -1), math.fmod(-7, 3), math.floor(-3.5), math.ceil(3.2))
for _, f in ipairs({ "sin", "cos", "tan", "asin", "acos", "atan", "exp", "log", "sqrt" }) do
  print(f, string.format("%.12g", math[f](0.5)))
end
print(tostring(1e15), tostring(2 ^ 53), 0x.8p1, 1e-7, 123456789012345678)
print(("hello world"):gsub("o", "0"), ("key = value"):match("(%w+)%s*=%s*(%w+)"), ("x"):rep(5, ","), ("abc"):byte(1, -1))
print(string.pack("<i4z", 7, "zz"):byte(1, -1)); print(string.unpack("<i4", "\1\2\3\4"))
print(utf8.char(228, 8364, 128512), utf8.len("ä€"), #"ä€")
for p, c in utf8.codes("aä") do io.write(p, ":", c, " ") end print()
local t = {}
for i = 1, 1000 do t[i] = (i * 7919) % 1009 end
table.sort(t)
local ordered = true
for i = 2, #t do ordered = ordered and t[i - 1] <= t[i] end
print(ordered, #t, t[1], t[1000], table.concat({ 1, 2, 3 }, "-"), select("#", table.unpack({}, 1, 20)))
table.sort(t, function(a, b) return a > b end)
print(t[1], t[1000], table.remove(t, 1), #t, next({}), rawlen({ 1, 2 }), table.move({ 1, 2, 3 }, 1, 3, 2)[3])
local mt = { __index = function(_, k) return k .. "!" end, __call = function(self, x) return x * 2 end, __eq = function() return true end,
  __lt = function() return true end, __le = function() return false end, __concat = function() return "cat" end, __len = function() return 99 end,
  __unm = function() return "neg" end, __tostring = function() return "obj" end, __add = function() return "sum" end, __idiv = function() return "idiv" end }
local a, b = setmetatable({}, mt), setmetatable({}, mt)
print(a.key, a(21), a == b, a < b, a <= b, a .. b, #a, -a, tostring(a), a + 1, 1 // a)
local weak = setmetatable({}, { __mode = "v" })
for i = 1, 100 do weak[i] = {} end
collectgarbage()
local n = 0
for _ in pairs(weak) do n = n + 1 end
print("weak", n)
local finalized = 0
for i = 1, 500 do setmetatable({}, { __gc = function() finalized = finalized + 1 end }) end
collectgarbage(); collectgarbage()
print("finalized", finalized)
for _, mode in ipairs({ "generational", "incremental" }) do
  collectgarbage(mode)
  local keep = {}
  for i = 1, 50000 do keep[i % 500] = { i, tostring(i), { i } } end
  collectgarbage()
  print(mode, keep[7][2], keep[499][3][1])
end
goto done
print("never")
::done::
for i = 10, 1, -3 do io.write(i, " ") end
for i = 1.0, 2.0, 0.25 do io.write(i, " ") end print()
local f = assert(io.open("lua.txt", "w")); f:write("one\ntwo\n", 3, "\n"); f:close()
for line in io.lines("lua.txt") do io.write("[", line, "]") end print()
f = io.open("lua.txt"); print(f:read("n"), f:seek("set", 4), f:read("l"), f:read("n"), f:read("a")); f:close()
print(io.open("missing.txt")); print(os.remove("lua.txt")); print(os.time({ year = 2020, month = 1, day = 1, hour = 12 }) > 0, os.date("!%Y-%m-%d", 0))
print(pcall(string.dump, print)); print(load(string.dump(function(x) return x + 1 end))(41))
print(os.getenv("HOME_OF_NOBODY"), type(os.clock()))
