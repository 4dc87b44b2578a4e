-- Takes a holder's last word. Mirrors `transition::finalise`.
-- KEYS: record. ARGV: how the record begins as it was claimed, to the end of its owner, or nothing;
-- the record as it is to be; life of the key; where its body begins; time or 0.
-- A call that ran undisturbed left its record as it was claimed, so its holder knows all of it, and
-- writes all of it. Of the others only the front, the owner and the body are known.
local at, record = KEYS[1], ARGV[2]
if ARGV[1] ~= '' and redis.call('GETRANGE', at, 0, #ARGV[1] - 1) == ARGV[1] then
  redis.call('SET', at, record, 'PX', ARGV[3])
  return 'o'
end
local state, flags = struct.unpack('<c1B', record)
local owner = string.sub(record, 59, 60 + struct.unpack('<H', record, 59))
local head = redis.call('GETRANGE', at, 0, 57 + #owner)
if head == '' then
  return 'g'
end
local was, held, version, created, updated = struct.unpack('<c1BI8c8I8', head)
if string.sub(head, 59) ~= owner or not (was == 'i' or (was == 'u' and state ~= 'u')) then
  return 'n'
end
local now = tonumber(ARGV[5])
if now == 0 then
  local t = redis.call('TIME')
  now = t[1] * 1000 + math.floor(t[2] / 1000)
end
local front = struct.pack('<c1BI8', state, held % 2 + flags - flags % 2, version + 1) .. created
  .. struct.pack('<I8I8', math.max(now, updated), 0) .. string.sub(record, 35, 42)
local body = string.sub(record, ARGV[4] + 1)
if was == 'i' then
  redis.call('SETRANGE', at, 0, front)
  redis.call('APPEND', at, body)
  redis.call('PEXPIRE', at, ARGV[3])
else
  -- It has a body already, which goes.
  local before = redis.call('GET', at)
  local _, _, pos = struct.unpack('<Hc0Hc0', before, 59)
  local length, begins = struct.unpack('<I4', before, pos)
  redis.call('SET', at, front .. string.sub(before, 43, begins + length - 1) .. body, 'PX', ARGV[3])
end
if held >= 4 then
  local prefix = string.match(string.sub(at, 1, -34), '^{(.*):%d+}$')
  redis.call('PUBLISH', '{' .. prefix .. '}:changed',
    string.sub(at, -32) .. struct.pack('<I8', version + 1))
end
return 'o'
