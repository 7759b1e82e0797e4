-- Shared head of take.lua, release.lua and withdraw.lua.
--
-- A grant is written as "<number> <holder id>". Numbers are strings of digits
-- everywhere: Lua's tostring loses digits from 1e14, a double from 2^53.

local function digits(n)
  return string.format('%.0f', n)
end

-- Server time in microseconds, an exact double until the year 2255.
local function now()
  local t = redis.call('TIME')
  return t[1] * 1000000 + t[2]
end

local function leave(queue, alive, id)
  redis.call('ZREM', queue, id)
  redis.call('ZREM', alive, id)
end

-- Forgets the waiters that have not asked again in time.
local function prune(queue, alive, us)
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', alive, '-inf', digits(us / 1000))) do
    leave(queue, alive, id)
  end
end

-- Tells the longest waiting of the waiters to ask now, and the one after it to
-- look whether the first did. Returns why that could not be told, or ''. An
-- error must not undo the rest: a script has no rollback.
local function wake(queue, alive, channel)
  prune(queue, alive, now())
  local first = redis.call('ZRANGE', queue, 0, 1)
  if #first == 0 then
    return ''
  end
  local told = redis.pcall('PUBLISH', channel, table.concat(first, ' '))
  return type(told) == 'table' and told.err or ''
end
