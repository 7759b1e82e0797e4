-- Takes the lock if it is free, else counts the caller among the waiters.
--
-- KEYS lock, last, queue, alive, gone
-- ARGV id of the attempt, TTL in ms, patience in ms (0: does not wait)
--
-- Replies {'granted', number}, {'held', ms until it runs out or -1, rank},
-- {'over'}: this attempt had its grant, or was withdrawn,
-- {'used up', last number}: the numbers are exhausted or not numbers.
local lock, last, queue, alive = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local id, ttl, patience = ARGV[1], ARGV[2], tonumber(ARGV[3])

if redis.call('EXISTS', KEYS[5]) == 1 then
  return {'over'}
end

local function held(ms)
  if patience == 0 then
    return {'held', ms, 0}
  end
  local us = now()
  prune(queue, alive, us)
  redis.call('ZADD', queue, 'NX', digits(us), id)
  redis.call('ZADD', alive, digits(us / 1000 + patience), id)
  for _, key in ipairs({queue, alive}) do
    if redis.call('PTTL', key) < patience then
      redis.call('PEXPIRE', key, patience)
    end
  end
  return {'held', ms, redis.call('ZRANK', queue, id)}
end

local current = redis.call('GET', lock)
if current then
  local number, holder = current:match('^(%d+) (%S+)$')
  if holder ~= id then
    return held(redis.call('PTTL', lock))
  end
  -- A repeated request of this attempt. The full TTL counts again, because the
  -- caller counts from before this request.
  redis.call('PEXPIRE', lock, ttl)
  return {'granted', number}
end

local us = now()
if patience == 0 and redis.call('ZCOUNT', alive, '(' .. digits(us / 1000), '+inf') > 0 then
  return held(0)
end

-- The number is above the last one and not below the clock, so that a lost
-- counter does not send it backwards.
local seq = us
local before = redis.call('GET', last)
if before then
  local number, holder = before:match('^(%d+) (%S+)')
  if not number then
    return {'used up', before}
  end
  if holder == id then
    return {'over'}
  end
  seq = math.max(tonumber(number) + 1, us)
  if seq > 9007199254740991 then
    return {'used up', number}
  end
end

local grant = digits(seq) .. ' ' .. id
redis.call('SET', last, grant, 'PXAT', digits(math.floor(seq / 1000) + 86400000))
redis.call('SET', lock, grant, 'PX', ttl)
leave(queue, alive, id)
return {'granted', digits(seq)}
