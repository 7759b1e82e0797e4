-- What take.lua, release.lua and withdraw.lua share.
--
-- KEYS lock, last, queue, alive, ...
-- ARGV id or grant, channel of a Locker without its name, claim time in ms, ...
--
-- A grant is written as "<number> <id>", a reservation as "reserved <id>". Numbers
-- are strings of digits everywhere: Lua's tostring loses digits from 1e14, a
-- double from 2^53.
local lock, last, queue, alive = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local wake, claim = ARGV[2], ARGV[3]

local function digits(n)
  return string.format('%.0f', n)
end

-- Server time in microseconds, an exact double until the year 2255.
local function now()
  local t = redis.call('TIME')
  return t[1] * 1000000 + t[2]
end

local function leave(id)
  redis.call('ZREM', queue, id)
  redis.call('ZREM', alive, id)
end

-- The first few waiters, after those that have not asked again in time are
-- forgotten. Without waiters it is one command.
local function front()
  local first = redis.call('ZRANGE', queue, 0, 3)
  if #first == 0 then
    return first
  end
  local gone = redis.call('ZRANGEBYSCORE', alive, '-inf', digits(now() / 1000))
  if #gone == 0 then
    return first
  end
  for _, id in ipairs(gone) do
    leave(id)
  end
  return redis.call('ZRANGE', queue, 0, 3)
end

-- An id is the name of its Locker, a dot, and a count.
local function locker(id)
  return id:match('^(.*)%.') or id
end

local function tell(id, text)
  return redis.pcall('PUBLISH', wake .. locker(id), text)
end

-- Tells the one that the lock is reserved for, and one of another Locker to look
-- when the claim time is over. Of the dead no connection is left to hear it, so
-- more are told until one does, the newest waiter last; a Cluster does not know
-- who hears, and all of these look, one after the other. Returns why the first
-- could not be told, or ''. An error must not undo the rest: a script has no
-- rollback.
local function announce(first)
  local told = tell(first[1], first[1])
  if type(told) == 'table' then
    return told.err
  end
  local own, look = locker(first[1]), claim + 1
  local function watched(id)
    if locker(id) == own then
      return false
    end
    look = math.floor(look + claim / 10)
    return tell(id, id .. ' ' .. digits(look)) ~= 0
  end
  for i = 2, #first do
    if watched(first[i]) then
      return ''
    end
  end
  if #first == 4 then
    watched(redis.call('ZRANGE', queue, -1, -1)[1] or own)
  end
  return ''
end

-- Reserves the free lock for the first waiter. It leaves the queue with that:
-- when the claim time is over it has lost its turn, and the next is first.
local function reserve(first)
  leave(first[1]) -- before SET, which a server out of memory refuses as the first write
  redis.call('SET', lock, 'reserved ' .. first[1], 'PX', claim)
  return announce(first)
end

-- Frees the lock, or reserves it if somebody waits.
local function pass()
  local first = front()
  if #first > 0 then
    return reserve(first)
  end
  redis.call('DEL', lock)
  return ''
end
