-- Shared head of the redlock scripts.
--
-- A counter is written as "<number> <holder id>", and " released" behind it once
-- that holder has given the lock back. Numbers are strings of digits
-- everywhere: Lua's tostring loses digits from 1e14, a double from 2^53.
local DAY = 86400000

local function digits(n)
  return string.format('%.0f', n)
end

-- Server time in microseconds, an exact double until the year 2255.
local function now()
  local t = redis.call('TIME')
  return t[1] * 1000000 + t[2]
end

-- Number and holder of a counter; nil for what is none.
local function split(count)
  if not count then
    return nil
  end
  return count:match('^(%d+) (%S+)')
end

-- The counter may be forgotten a day after its number read as time: from then on
-- the clock alone gives a higher one. A lease may be older than that when a
-- renewal writes its number, and Redis deletes what expires in the past.
local function store(key, number, id)
  local from = math.max(tonumber(number), now())
  redis.call('SET', key, number .. ' ' .. id, 'PXAT', digits(math.floor(from / 1000) + DAY))
end

-- Tells the longest waiting of the waiters that can be told to ask now, and the
-- one after it to look whether the first did. Returns why that could not be done,
-- or ''. An error must not undo the rest: a script has no rollback.
local function wake(queue, channel)
  local first
  repeat
    first = redis.call('ZPOPMIN', queue)[1]
    if not first then
      return ''
    end
    local told = redis.pcall('PUBLISH', channel .. first:match('^[^/]*'), first)
    if type(told) == 'table' then
      return told.err
    end
  until told > 0
  local second = redis.call('ZRANGE', queue, 0, 0)[1]
  if second then
    redis.pcall('PUBLISH', channel .. second:match('^[^/]*'), second .. ' later')
  end
  return ''
end
