-- Takes a holder's last word. Mirrors `transition::finalise`.
-- KEYS: record. ARGV: numbers and owner, time to live and body, life of the key.
local before = redis.call('GET', KEYS[1])
if not before then
  return 'g'
end
local was, held, version, created, updated, _, _, _, owner, _, pos =
  struct.unpack('<c1BI8I8I8I8I8c16Hc0Hc0', before)
local now, flags, state, holder = struct.unpack('<I8Bc1Hc0', ARGV[1])
if owner ~= holder or not (was == 'i' or (was == 'u' and state ~= 'u')) then
  return 'n'
end
if now == 0 then
  local t = redis.call('TIME')
  now = t[1] * 1000 + math.floor(t[2] / 1000)
end
if now < updated then
  now = updated
end
local length, begins = struct.unpack('<I4', before, pos)
redis.call('SET', KEYS[1],
  struct.pack('<c1BI8I8I8I8', state, held % 2 + flags, version + 1, created, now, 0)
    .. string.sub(ARGV[2], 1, 8) .. string.sub(before, 43, begins + length - 1)
    .. string.sub(ARGV[2], 9), 'PX', ARGV[3])
if held >= 4 then
  local prefix = string.match(string.sub(KEYS[1], 1, -34), '^{(.*):%d+}$')
  redis.call('PUBLISH', '{' .. prefix .. '}:changed',
    string.sub(KEYS[1], -32) .. struct.pack('<I8', version + 1))
end
return 'o'
