-- Removes whatever an attempt has left, and shuts out late copies of its
-- requests for a while.
--
-- KEYS lock, last, queue, alive, gone
-- ARGV id of the attempt, channel, ms to shut it out
--
-- Replies {1 if another has the lock, else 0, why no waiter could be told or ''}.
local lock, last, queue, alive = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local id, channel = ARGV[1], ARGV[2]

-- In this order: a server out of memory refuses SET as a script's first write.
leave(queue, alive, id)
redis.call('SET', KEYS[5], '', 'PX', ARGV[3])
local current = redis.call('GET', lock)
if current then
  if current:match('^%d+ (%S+)$') ~= id then
    return {1, ''}
  end
  redis.call('DEL', lock)
  if redis.call('GET', last) == current then
    redis.call('SET', last, current .. ' released', 'KEEPTTL')
  end
end
-- The withdrawn waiter may be the one that a release has woken.
return {0, wake(queue, alive, channel)}
