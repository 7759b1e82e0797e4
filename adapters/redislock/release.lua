-- Frees the lock if it is the caller's, or reserves it for the first waiter.
--
-- KEYS lock, last, queue, alive
-- ARGV grant, channel, claim time in ms
--
-- Replies {1 or 0, why the waiter could not be told or ''}; 0: it was not there.
local grant = ARGV[1]
local released = grant .. ' released'

local stored = redis.call('MGET', KEYS[1], KEYS[2])
if stored[1] ~= grant then
  -- A repeated release finds its own work done.
  return {stored[2] == released and 1 or 0, ''}
end
local untold = ''
if redis.call('EXISTS', KEYS[3]) == 1 then
  -- include waiters.lua
  untold = pass()
else
  redis.call('DEL', KEYS[1])
end
if stored[2] == grant then
  redis.call('SET', KEYS[2], released, 'KEEPTTL')
end
return {1, untold}
