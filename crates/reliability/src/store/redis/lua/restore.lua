-- Puts a record of another store in, unless the key is known here already.
-- KEYS: record, index, and the content's pointer where there is one.
-- ARGV: record, member of the index, life of the key.
if redis.call('EXISTS', KEYS[1]) == 1 then
  return 0
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[3])
redis.call('SADD', KEYS[2], ARGV[2])
if KEYS[3] then
  redis.call('SET', KEYS[3], string.sub(KEYS[1], -32), 'PX', ARGV[3], 'NX')
end
return 1
