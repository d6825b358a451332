-- Errors travel by longjmp: nested, through metamethods, coroutines, to-be-closed variables and C functions.
local function fails(f, ...)
  local ok, message = pcall(f, ...)
  assert(not ok)
  return message
end

print(fails(function() error("plain") end))
print(fails(function() error({ code = 7 }) end).code)
print(fails(function() local x = nil; return x.field end))
print(fails(function() return 1 + {} end))
print(fails(function() return #5 end))
print(fails(string.format, "%d", 1.5))
print(fails(setmetatable, 1, 2))
print(select(2, load("x = = 1")))
print(select(2, load("for")))

-- 10,000 errors, at growing depth.
local function deep(n) if n == 0 then error("bottom", 0) end return 1 + deep(n - 1) end
local count = 0
for i = 1, 10000 do
  local ok, m = pcall(deep, i % 150)
  if not ok and m == "bottom" then count = count + 1 end
end
print("errors", count)

-- Nested protected calls: the innermost catches, rethrows go outward.
local function nest(n)
  if n == 0 then error("core", 0) end
  local ok, m = pcall(nest, n - 1)
  error(m .. "/" .. n, 0)
end
print(fails(nest, 20))

-- Stack overflow of Lua and of C is an error, too.
local function forever() return 1 + forever() end
print((fails(forever):gsub(":.*", "")))
print((fails(string.gsub, string.rep("a", 10), "a", function() return forever() end):match("stack overflow")))
local s = string.rep("(", 300) .. "1" .. string.rep(")", 300)
print((select(2, load("return " .. s))))

-- Coroutines: errors inside, yields across pcall, closing.
local co = coroutine.create(function(a)
  local ok, m = pcall(function() coroutine.yield(a + 1); error("inside", 0) end)
  coroutine.yield(m)
  error("last", 0)
end)
print(coroutine.resume(co, 1)); print(coroutine.resume(co)); print(coroutine.resume(co)); print(coroutine.resume(co))
local log = {}
local function guard(name) return setmetatable({}, { __close = function(_, e) log[#log + 1] = name .. ":" .. tostring(e) end }) end
print(pcall(function()
  local a <close> = guard("a")
  local b <close> = guard("b")
  error("closing", 0)
end))
print(table.concat(log, " "))
local wrapped = coroutine.wrap(function() for i = 1, 3 do coroutine.yield(i) end end)
print(wrapped(), wrapped(), wrapped(), wrapped(), (select(2, pcall(wrapped))))

-- Error handlers with a traceback, and errors in error handlers.
print(xpcall(function() error("traced", 0) end, function(m) return m .. "!" end))
print((xpcall(function() error("x") end, function() error("y") end)))

-- 200 coroutines alive, each with an error on its way.
local all = {}
for i = 1, 200 do all[i] = coroutine.create(function() coroutine.yield(i); error(i, 0) end) end
local sum = 0
for i = 1, 200 do sum = sum + select(2, coroutine.resume(all[i])) end
for i = 200, 1, -1 do local ok, v = coroutine.resume(all[i]); assert(not ok); sum = sum + v end
print("sum", sum)
