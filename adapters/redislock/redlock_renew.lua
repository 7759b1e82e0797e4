-- Moves the end of a lock that is still the caller's. A counter that is lower than
-- the token, because this node was not of the set that made it, moves up to it.
-- Takes a free lock only to repair, and only where the counter has not passed the
-- token.
--
-- KEYS lock, count, gone, node
-- ARGV id of the attempt, token, TTL in ms, 1 to repair, id of the server that was
--      met
--
-- Replies {'renewed'}, {'repaired'}, {'free'}: may be repaired,
-- {'other'}: another has it, {'lost'}: free, and may not be repaired, {'another'}:
-- it is not the server that was met.
local lock, count = KEYS[1], KEYS[2]
local id, token, ttl = ARGV[1], ARGV[2], ARGV[3]

local known = redis.call('MGET', lock, count, KEYS[3], KEYS[4])
local current, before, gone = known[1], known[2], known[3]
local number, holder = split(before)
if current == id and known[4] ~= ARGV[5] then
  return {'another'}
end
if current == id then
  if not number or tonumber(number) < tonumber(token) then
    store(count, token, id)
  end
  if redis.call('PTTL', count) < DAY then
    redis.call('PEXPIRE', count, DAY)
  end
  redis.call('PEXPIRE', lock, ttl)
  return {'renewed'}
end
if current then
  return {'other'}
end
local released = before == token .. ' ' .. id .. ' released'
if gone or released or not number or tonumber(number) > tonumber(token) then
  return {'lost'}
end
if known[4] ~= ARGV[5] then
  return {'another'}
end
if ARGV[4] ~= '1' then
  return {'free'}
end
store(count, token, id)
redis.call('SET', lock, id, 'PX', ttl)
return {'repaired'}
