-- Stores the token if the lock is still the caller's and nobody has taken it in
-- between: the counter is still the one that this node gave.
--
-- KEYS lock, count
-- ARGV id of the attempt, number that this node gave, token, TTL in ms
--
-- Replies {1}, also for a repeated request, or {0}: refused.
local lock, count = KEYS[1], KEYS[2]
local id, given, token, ttl = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

local known = redis.call('MGET', lock, count)
if known[1] ~= id then
  return {0}
end
if known[2] ~= given .. ' ' .. id and known[2] ~= token .. ' ' .. id then
  return {0}
end
store(count, token, id)
redis.call('PEXPIRE', lock, ttl)
return {1}
