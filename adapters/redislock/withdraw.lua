-- Removes whatever an attempt has left, and shuts out late copies of its
-- requests for a while.
--
-- KEYS lock, last, queue, alive, gone
-- ARGV id of the attempt, channel, claim time in ms, ms to shut it out
--
-- Replies {1 if another has the lock, else 0, why a waiter could not be told or ''}.
local id = ARGV[1]
-- include waiters.lua

-- In this order: a server out of memory refuses SET as a script's first write.
leave(id)
redis.call('SET', KEYS[5], '', 'PX', ARGV[4])
local current = redis.call('GET', lock)
if current and current:match('^%S+ (%S+)$') ~= id then
  return {1, ''}
end
-- Free, the caller's grant, or reserved for it.
local untold = pass()
if current and redis.call('GET', last) == current then
  redis.call('SET', last, current .. ' released', 'KEEPTTL')
end
return {0, untold}
