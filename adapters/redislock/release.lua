-- Frees the lock if it is the caller's and wakes a waiter.
--
-- KEYS lock, last, queue, alive
-- ARGV grant, channel
--
-- Replies {1 or 0, why no waiter could be told or ''}; 0: it was not there.
local lock, last, queue, alive = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local grant, channel = ARGV[1], ARGV[2]
local released = grant .. ' released'

if redis.call('GET', lock) ~= grant then
  -- A repeated release finds its own work done.
  return {redis.call('GET', last) == released and 1 or 0, ''}
end
redis.call('DEL', lock)
if redis.call('GET', last) == grant then
  redis.call('SET', last, released, 'KEEPTTL')
end
return {1, wake(queue, alive, channel)}
