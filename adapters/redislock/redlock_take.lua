-- Takes the lock on this node if it is free and numbers that, else counts the
-- caller among the waiters.
--
-- KEYS lock, count, queue, gone, set, rest, node
-- ARGV id of the attempt, TTL in ms, floor in us, bound in us, the set,
--      id of the waiter (empty: does not wait), its arrival in us, patience in ms,
--      rest in ms, id of the server that was met
--
-- Replies {'granted', number}, {'held', ms until it runs out or -1, rank},
-- {'over'}: this attempt had the lock here, or was withdrawn,
-- {'stranger', set}: this server belongs to another set,
-- {'another'}: it is not the server that was met,
-- {'resting', ms}: this server has forgotten, and what it forgot must run out,
-- {'used up', counter}: the numbers are exhausted or not numbers.
local lock, count, queue = KEYS[1], KEYS[2], KEYS[3]
local id, ttl, floor, bound, set = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5]
local waiter, arrival, patience = ARGV[6], ARGV[7], tonumber(ARGV[8])

local known = redis.call('MGET', lock, count, KEYS[4], KEYS[5], KEYS[6], KEYS[7])
local current, before, gone, mine, resting = known[1], known[2], known[3], known[4], known[5]

if not mine then
  redis.call('SET', KEYS[5], set)
  redis.call('SET', KEYS[6], '', 'PX', ARGV[9])
  return {'resting', tonumber(ARGV[9])}
end
if mine ~= set then
  return {'stranger', mine}
end
if known[6] ~= ARGV[10] then
  return {'another'}
end
if resting then
  return {'resting', redis.call('PTTL', KEYS[6])}
end
if gone then
  return {'over'}
end

local number, holder = split(before)
if before and not number then
  return {'used up', before}
end
if current and current ~= id then
  local rank = 0
  if waiter ~= '' then
    redis.call('ZADD', queue, 'NX', arrival, waiter)
    if redis.call('PTTL', queue) < patience then
      redis.call('PEXPIRE', queue, patience)
    end
    rank = redis.call('ZRANK', queue, waiter)
  end
  return {'held', redis.call('PTTL', lock), rank}
end
if current and number then
  -- A repeated request of this attempt. The full TTL counts again, because the
  -- caller counts from before this request.
  redis.call('PEXPIRE', lock, ttl)
  return {'granted', number}
end
if holder == id then
  return {'over'}
end

local us = now()
local seq = math.max((tonumber(number) or 0) + 1, math.min(floor, us + bound), us)
if seq > 9007199254740991 then
  return {'used up', before or ''}
end
store(count, digits(seq), id)
redis.call('SET', lock, id, 'PX', ttl)
if waiter ~= '' then
  redis.call('ZREM', queue, waiter)
end
return {'granted', digits(seq)}
