-- Frees the lock on this node if it is the caller's, and takes its waiter out.
--
-- KEYS lock, count, queue, gone
-- ARGV id of the attempt, ms to shut out its late copies (0: not), id of the
--      waiter or empty, start of the channels to wake the next waiter, or empty
--
-- Replies {1: freed now or before, 0: it was not there, 2: another has it,
-- why no waiter could be told or ''}.
local lock, count, queue = KEYS[1], KEYS[2], KEYS[3]
local id, shut, waiter, channel = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

-- In this order: a server out of memory refuses SET as a script's first write.
if waiter ~= '' then
  redis.call('ZREM', queue, waiter)
end
local known = redis.call('MGET', lock, count)
local current, before = known[1], known[2]
local number, holder = split(before)
local result = current and 2 or 0
if current == id then
  redis.call('DEL', lock)
  if holder == id then
    redis.call('SET', count, number .. ' ' .. id .. ' released', 'KEEPTTL')
  end
  result = 1
elseif holder == id and before == number .. ' ' .. id .. ' released' then
  result = 1 -- a repeated release finds its own work done
end
if shut ~= '0' then
  redis.call('SET', KEYS[4], '', 'PX', shut)
end
if channel ~= '' and (not current or current == id) then
  return {result, wake(queue, channel)}
end
return {result, ''}
