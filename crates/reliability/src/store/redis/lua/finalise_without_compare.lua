-- As finalise.lua, without its compare: a planted fault for the checker to find.
-- KEYS: record, index. ARGV: numbers, key, owner, time to live as stored, of the key, body, channel.
local now, flags, state = struct.unpack('<I8Bc1', ARGV[1])
local before = redis.call('GET', KEYS[1])
if not before then
  return 'g'
end
local was, held, version, created, updated, _, _, places, owner, digest, pos =
  struct.unpack('<c1BI8I8I8I8I8c16Hc0Hc0', before)
if now == 0 then
  local t = redis.call('TIME')
  now = t[1] * 1000 + math.floor(t[2] / 1000)
end
now = math.max(now, updated)
local length, begins = struct.unpack('<I4', before, pos)
redis.call('SET', KEYS[1],
  struct.pack('<c1BI8I8I8I8', state, held % 2 + flags, version + 1, created, now, 0)
    .. ARGV[4] .. string.sub(before, 43, begins + length - 1) .. ARGV[6], 'PX', ARGV[5])
redis.call('ZADD', KEYS[2], state == 'u' and 1e15 + now or now, ARGV[2] .. places)
if held >= 4 then
  redis.call('PUBLISH', ARGV[7], ARGV[2] .. struct.pack('<I8', version + 1))
end
return 'o'
