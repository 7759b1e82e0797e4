-- Tells whether a token is the grant that this node has now.
--
-- KEYS lock, count, node
-- ARGV token's holder, token's number, id of the server that was met
--
-- Replies {1}, {0, holder of the lock or '', counter or ''}, or {'another'}: it is
-- not the server that was met.
local known = redis.call('MGET', KEYS[1], KEYS[2], KEYS[3])
if known[1] == ARGV[1] and known[2] == ARGV[2] .. ' ' .. ARGV[1] then
  return {known[3] == ARGV[3] and 1 or 'another'}
end
return {0, known[1] or '', known[2] or ''}
