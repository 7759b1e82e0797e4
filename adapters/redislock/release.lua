-- Frees the lock if it is the caller's, or reserves it for the first waiter.
--
-- KEYS lock, last, queue, alive
-- ARGV grant, channel, claim time in ms
--
-- Replies {1 or 0, why the waiter could not be told or ''}; 0: it was not there.
local grant = ARGV[1]
local released = grant .. ' released'

local stored = redis.call('MGET', lock, last)
if stored[1] ~= grant then
  -- A repeated release finds its own work done.
  return {stored[2] == released and 1 or 0, ''}
end
local untold = pass()
if stored[2] == grant then
  redis.call('SET', last, released, 'KEEPTTL')
end
return {1, untold}
