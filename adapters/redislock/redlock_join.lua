-- Tells to which set this server belongs, for which one it has a bid, and its own
-- id, which is made at the first request.
--
-- KEYS set, node, bid, rest
-- ARGV id for a server that has none, bid for a server that has none (empty: no
--      bid), bid that it gives up for that one (empty: none), set to join if it is
--      in none (empty: does not join), rest in ms of a server that joins a set it
--      has made no bid for
--
-- Replies {id of the server, set or '', bid or ''}.
local offer, outbid, join = ARGV[2], ARGV[3], ARGV[4]
local known = redis.call('MGET', KEYS[1], KEYS[2], KEYS[3])
local set, node, bid = known[1], known[2], known[3]

if not node then
  node = ARGV[1]
  redis.call('SET', KEYS[2], node)
end
if offer ~= '' and not set and (not bid or bid == outbid) then
  redis.call('SET', KEYS[3], offer)
  bid = offer
end
if join ~= '' and not set then
  redis.call('SET', KEYS[1], join)
  set = join
  if bid ~= join then
    redis.call('SET', KEYS[4], '', 'PX', ARGV[5])
  end
end
return {node, set or '', bid or ''}
