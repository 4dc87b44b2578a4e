-- Stores a value in a hash if the one there is the one that was seen. Answers with what is there.
-- KEYS: hash. ARGV: field, seen or nothing, value, most fields, channel or nothing.
local there = redis.call('HGET', KEYS[1], ARGV[1])
if (there or '') ~= ARGV[2] then
  return { 0, there }
end
if not there and redis.call('HLEN', KEYS[1]) >= tonumber(ARGV[4]) then
  return { -1 }
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
redis.call('HINCRBY', KEYS[1], '', 1)
if ARGV[5] ~= '' then
  redis.call('PUBLISH', ARGV[5], ARGV[1])
end
return { 1 }
