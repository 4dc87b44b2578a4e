-- Removes a record: its holder takes the claim back, or (without an owner) somebody clears it.
-- KEYS: record, index. ARGV: owner or nothing.
local rec = redis.call('GET', KEYS[1])
if not rec then
  return 'g'
end
local state, flags, version, _, _, _, _, places, owner = struct.unpack('<c1BI8I8I8I8I8c16Hc0', rec)
if ARGV[1] ~= '' and (owner ~= ARGV[1] or not (state == 'i' or state == 'u')) then
  return 'n'
end
local key = string.sub(KEYS[1], -32)
if ARGV[1] == '' then
  -- Its holder may still speak, and must not take the record for one that the server has lost.
  local life = math.max(redis.call('PTTL', KEYS[1]), 60000)
  redis.call('SET', string.sub(KEYS[1], 1, -34) .. 't' .. key .. owner, '', 'PX', life)
end
redis.call('DEL', KEYS[1])
redis.call('SREM', KEYS[2], key .. places)
if flags >= 4 then
  local prefix = string.match(string.sub(KEYS[1], 1, -34), '^{(.*):%d+}$')
  redis.call('PUBLISH', '{' .. prefix .. '}:changed', key .. struct.pack('<I8', version + 1))
end
return 'o'
