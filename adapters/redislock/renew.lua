-- Moves the end of a grant that is still there, and that of the last number,
-- which must not be forgotten before the lock however long it is held.
--
-- KEYS lock, last
-- ARGV grant, TTL in ms
--
-- Replies {1}, or {0}: it is not there.
local lock, last = KEYS[1], KEYS[2]
local grant, ttl, day = ARGV[1], ARGV[2], 86400000

if redis.call('GET', lock) ~= grant then
  return {0}
end
if redis.call('PTTL', last) < day then
  redis.call('PEXPIRE', last, day)
end
return {redis.call('PEXPIRE', lock, ttl)}
