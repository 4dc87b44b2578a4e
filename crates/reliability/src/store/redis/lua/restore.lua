-- Puts a record of another store in, unless the key is known here already.
-- KEYS: record, index, session's set, tool's set, and the content's pointer where there is one.
-- ARGV: record, member of the index, score, time to live of the key, key.
if redis.call('EXISTS', KEYS[1]) == 1 then
  return 0
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[4])
redis.call('ZADD', KEYS[2], ARGV[3], ARGV[2])
redis.call('SADD', KEYS[3], ARGV[2])
redis.call('SADD', KEYS[4], ARGV[2])
if KEYS[5] then
  redis.call('SET', KEYS[5], ARGV[5], 'PX', ARGV[4], 'NX')
end
return 1
