-- Puts a granted claim back that the server has lost, unless somebody cleared it since it was claimed.
-- KEYS: record, index, mark of its clearing, and the content's pointer where there is one.
-- ARGV: numbers, rest of the record, life of the key.
if redis.call('EXISTS', KEYS[1]) == 1 then
  return 'n'
end
local now, created, lease, flags, known = struct.unpack('<I8I8I8BI8', ARGV[1])
-- Older versions say only that it was cleared.
local cleared = redis.call('GET', KEYS[3])
if cleared and (tonumber(cleared) or math.huge) > known then
  return 'g'
end
if now == 0 then
  local t = redis.call('TIME')
  now = t[1] * 1000 + math.floor(t[2] / 1000)
end
redis.call('SET', KEYS[1],
  struct.pack('<c1BI8I8I8I8', 'i', flags, 1, math.min(created, now), now, now + lease) .. ARGV[2],
  'PX', ARGV[3])
redis.call('SADD', KEYS[2], string.sub(KEYS[1], -32) .. string.sub(ARGV[2], 9, 24))
if KEYS[4] then
  redis.call('SET', KEYS[4], string.sub(KEYS[1], -32), 'PX', ARGV[3], 'NX')
end
return 'o'
