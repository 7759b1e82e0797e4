-- Moves the end of a grant that is still there.
-- KEYS lock   ARGV grant, TTL in ms   Replies 1, or 0: it is not there.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
