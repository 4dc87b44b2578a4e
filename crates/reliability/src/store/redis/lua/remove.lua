-- Removes a record: its holder takes the claim back, or (without an owner) somebody clears it.
-- KEYS: record, index. ARGV: key, owner or nothing, channel.
local rec = redis.call('GET', KEYS[1])
if not rec then
  return 'g'
end
local state, flags, version, _, _, _, _, session, tool, owner =
  struct.unpack('<c1BI8I8I8I8I8c8c8Hc0', rec)
if ARGV[2] ~= '' and (owner ~= ARGV[2] or not (state == 'i' or state == 'u')) then
  return 'n'
end
local base, member = string.sub(KEYS[2], 1, -2), ARGV[1] .. session .. tool
redis.call('DEL', KEYS[1])
redis.call('ZREM', KEYS[2], member)
redis.call('SREM', base .. 's' .. session, member)
redis.call('SREM', base .. 't' .. tool, member)
if flags >= 4 then
  redis.call('PUBLISH', ARGV[3], ARGV[1] .. struct.pack('<I8', version + 1))
end
return 'o'
