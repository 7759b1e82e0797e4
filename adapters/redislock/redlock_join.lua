-- Tells to which set this server belongs, and its own id, which is made at the
-- first request.
--
-- KEYS set, node, rest
-- ARGV id for a server that has none, set to join if it is in none (empty: does
--      not join), set that it leaves for that one (empty: none), rest in ms of a
--      server that joins a set which others are in (0: the set is new)
--
-- Replies {id of the server, set or ''}.
local join, leave, rest = ARGV[2], ARGV[3], ARGV[4]
local known = redis.call('MGET', KEYS[1], KEYS[2])
local set, node = known[1], known[2]

if not node then
  node = ARGV[1]
  redis.call('SET', KEYS[2], node)
end
if join ~= '' and (not set or set == leave) then
  redis.call('SET', KEYS[1], join)
  set = join
  if rest ~= '0' then
    redis.call('SET', KEYS[3], '', 'PX', rest)
  end
end
return {node, set or ''}
