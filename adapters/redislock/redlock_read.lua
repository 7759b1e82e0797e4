-- Tells whether a token is the grant that this node has now.
--
-- KEYS lock, count
-- ARGV token's holder, token's number
--
-- Replies {1}, or {0, holder of the lock or '', counter or ''}.
local known = redis.call('MGET', KEYS[1], KEYS[2])
if known[1] == ARGV[1] and known[2] == ARGV[2] .. ' ' .. ARGV[1] then
  return {1}
end
return {0, known[1] or '', known[2] or ''}
