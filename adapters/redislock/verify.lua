-- Reads what the lock's key holds, from a primary only.
--
-- KEYS lock, queue
--
-- Replies {text, or '' if the lock is free}.

-- Removes nothing, because no id is empty; a replica refuses it.
redis.call('ZREM', KEYS[2], '')
return {redis.call('GET', KEYS[1]) or ''}
