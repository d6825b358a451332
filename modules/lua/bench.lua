-- The workload: calls, tables, strings, floating point, closures, errors. Prints the best of three of each.
local function measure(what, f)
  local best
  for _ = 1, 3 do
    local start = now()
    f()
    local took = now() - start
    if not best or took < best then best = took end
  end
  print(what .. " " .. best)
end

local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end
measure("fib", function() fib(27) end)
measure("sieve", function()
  local t = {}
  for i = 2, 400000 do t[i] = true end
  for i = 2, 632 do if t[i] then for j = i * i, 400000, i do t[j] = false end end end
end)
measure("strings", function()
  local t = {}
  for i = 1, 60000 do t[#t + 1] = ("%d:%s"):format(i, ("ab"):rep(i % 9)) end
  local s = table.concat(t, ","); local n = 0
  for w in s:gmatch("[^,]+") do n = n + #w end
  s:gsub("a(b)", "%1")
end)
measure("objects", function()
  local Point = {}; Point.__index = Point
  function Point.new(x, y) return setmetatable({ x = x, y = y }, Point) end
  function Point:add(o) return Point.new(self.x + o.x, self.y + o.y) end
  local p = Point.new(0, 0); local q = Point.new(1, 2)
  for _ = 1, 300000 do p = p:add(q) end
end)
measure("matrix", function()
  local n = 90; local a, b, c = {}, {}, {}
  for i = 1, n do a[i], b[i], c[i] = {}, {}, {}
    for j = 1, n do a[i][j], b[i][j] = i + j, i - j end end
  for i = 1, n do for j = 1, n do local s = 0.0
    for k = 1, n do s = s + a[i][k] * b[k][j] end
    c[i][j] = s end end
end)
measure("sort", function()
  local t, x = {}, 42
  for i = 1, 60000 do x = (x * 1103515245 + 12345) % 2147483648; t[i] = x end
  table.sort(t); table.sort(t, function(a, b) return a > b end)
end)
measure("errors", function() for i = 1, 100000 do pcall(error, i) end end)
