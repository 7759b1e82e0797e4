-- Takes the lock if it is free and nobody waits, or if it is the caller's turn;
-- else counts the caller among the waiters.
--
-- KEYS lock, last, queue, alive, gone
-- ARGV id of the attempt, channel, claim time in ms, TTL in ms, patience in ms
--      (0: does not wait), arrival (0: not known yet)
--
-- Replies {'granted', number},
-- {'held' or 'missed', ms until the lock runs out or -1, how many look before the
-- caller, arrival}; missed: it was no longer among the waiters,
-- {'over'}: this attempt had its grant, or was withdrawn,
-- {'used up', last number}: the numbers are exhausted or not numbers.
local id, ttl, patience, arrival = ARGV[1], ARGV[4], tonumber(ARGV[5]), ARGV[6]

local stored = redis.call('MGET', KEYS[1], KEYS[2], KEYS[5])
local current, before = stored[1], stored[2]
if stored[3] then
  return {'over'}
end
local number, latest -- of the last grant
if before then
  number, latest = before:match('^(%d+) (%S+)')
  if latest == id and before ~= current then
    return {'over'}
  end
end

-- A free lock that nobody waits for goes without all of this.
if current or redis.call('EXISTS', KEYS[3]) == 1 then
  -- include waiters.lua

  -- The place of a waiter is its arrival, which rises even if the clock does not.
  -- Who comes back, after its turn was lost or the server forgot, has its old place.
  local function join()
    local us, place = now(), arrival
    if place == '0' then
      local newest = redis.call('ZRANGE', queue, -1, -1, 'WITHSCORES')[2]
      place = digits(math.max(us, (newest or 0) + 1))
    end
    local new = redis.call('ZADD', queue, 'NX', place, id)
    redis.call('ZADD', alive, digits(us / 1000 + patience), id)
    for _, key in ipairs({queue, alive}) do
      if redis.call('PTTL', key) < patience then
        redis.call('PEXPIRE', key, patience)
      end
    end
    return new == 1 and arrival ~= '0' and 'missed' or 'held'
  end

  local function wait(how, ms, rank)
    return {how, ms, rank or redis.call('ZRANK', queue, id), redis.call('ZSCORE', queue, id)}
  end

  if current then
    local granted, holder = current:match('^(%d+) (%S+)$')
    if holder == id then
      -- A repeated request of this attempt. The full TTL counts again, because the
      -- caller counts from before this request.
      redis.call('PEXPIRE', lock, ttl)
      return {'granted', granted}
    end
    if current ~= 'reserved ' .. id then
      local ms = redis.call('PTTL', lock)
      if patience == 0 then
        return {'held', ms, 0, '0'}
      end
      local how = join()
      front()
      return wait(how, ms)
    end
  else
    local first = front()
    if #first > 0 then
      local how = 'held'
      if patience > 0 then
        how = join()
        first = front()
      end
      if first[1] ~= id then
        reserve(first)
        if patience == 0 then
          return {'held', tonumber(claim), 0, '0'}
        end
        -- Who passes the lock on looks whether it is claimed.
        return wait(how, tonumber(claim), 0)
      end
      leave(id)
    end
  end
end

-- The number is above the last one and not below the clock, so that a lost
-- counter does not send it backwards.
local time = redis.call('TIME')
local seq = time[1] * 1000000 + time[2]
if before then
  if not number then
    return {'used up', before}
  end
  seq = math.max(tonumber(number) + 1, seq)
  if seq > 9007199254740991 then
    return {'used up', number}
  end
end

local minted = string.format('%.0f', seq)
local grant = minted .. ' ' .. id
redis.call('SET', KEYS[2], grant, 'PXAT', string.format('%.0f', math.floor(seq / 1000) + 86400000))
redis.call('SET', KEYS[1], grant, 'PX', ttl)
return {'granted', minted}
