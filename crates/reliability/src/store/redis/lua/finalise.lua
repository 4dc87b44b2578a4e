-- Takes a holder's last word. Mirrors `transition::finalise`.
-- KEYS: record. ARGV: owner with its length in front, the record's front as it was claimed or
-- nothing, its front as it is to be, body, life of the key, time or 0.
-- A record is changed in place, so that what never changes about it is not even read. Written for a
-- call that ran undisturbed, whose record is as it was claimed: its holder knows what to write.
local at, owner, front = KEYS[1], ARGV[1], ARGV[3]
local head = redis.call('GETRANGE', at, 0, 57 + #owner)
if head == '' then
  return 'g'
end
if string.sub(head, 1, 34) == ARGV[2] and string.sub(head, 59) == owner then
  redis.call('SETRANGE', at, 0, front)
  redis.call('APPEND', at, ARGV[4])
  redis.call('PEXPIRE', at, ARGV[5])
  return 'o'
end
local was, held, version, created, updated = struct.unpack('<c1BI8c8I8', head)
local state, flags = struct.unpack('<c1B', front)
if string.sub(head, 59) ~= owner or not (was == 'i' or (was == 'u' and state ~= 'u')) then
  return 'n'
end
local now = tonumber(ARGV[6])
if now == 0 then
  local t = redis.call('TIME')
  now = t[1] * 1000 + math.floor(t[2] / 1000)
end
front = struct.pack('<c1BI8', state, held % 2 + flags - flags % 2, version + 1) .. created
  .. struct.pack('<I8I8', math.max(now, updated), 0) .. string.sub(front, 35)
if was == 'i' then
  redis.call('SETRANGE', at, 0, front)
  redis.call('APPEND', at, ARGV[4])
  redis.call('PEXPIRE', at, ARGV[5])
else
  -- It has a body already, which goes.
  local before = redis.call('GET', at)
  local _, _, pos = struct.unpack('<Hc0Hc0', before, 59)
  local length, begins = struct.unpack('<I4', before, pos)
  redis.call('SET', at, front .. string.sub(before, 43, begins + length - 1) .. ARGV[4],
    'PX', ARGV[5])
end
if held >= 4 then
  local prefix = string.match(string.sub(at, 1, -34), '^{(.*):%d+}$')
  redis.call('PUBLISH', '{' .. prefix .. '}:changed',
    string.sub(at, -32) .. struct.pack('<I8', version + 1))
end
return 'o'
