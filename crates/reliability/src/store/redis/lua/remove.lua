-- Removes a record: its holder takes the claim back, or somebody clears it, where asked only as it was seen.
-- KEYS: record, index. ARGV: `holder` or `anybody`, owner or nothing, version seen or nothing,
-- shortest life of the mark of a clearing.
local rec = redis.call('GET', KEYS[1])
if not rec then
  return 'g'
end
local state, flags, version, _, _, _, _, places, owner = struct.unpack('<c1BI8I8I8I8I8c16Hc0', rec)
if ARGV[2] ~= '' and owner ~= ARGV[2] then
  return 'n'
end
local key = string.sub(KEYS[1], -32)
if ARGV[1] == 'holder' then
  if state ~= 'i' and state ~= 'u' then
    return 'n'
  end
else
  if ARGV[3] ~= '' and string.sub(rec, 3, 10) ~= ARGV[3] then
    return 'n'
  end
  -- Its holder may still speak, and must not take the record for one that the server has lost.
  -- The mark holds when: a call that waits may claim anew, and what is cleared after that is cleared too.
  local life = math.max(redis.call('PTTL', KEYS[1]), tonumber(ARGV[4]))
  local mark, t = string.sub(KEYS[1], 1, -34) .. 't' .. key .. owner, redis.call('TIME')
  local before = tonumber(redis.call('GET', mark) or '') or 0
  local at = math.max(before + 1, t[1] * 1000000 + t[2])
  redis.call('SET', mark, string.format('%.0f', at), 'PX', life)
end
redis.call('DEL', KEYS[1])
redis.call('SREM', KEYS[2], key .. places)
if flags >= 4 then
  local prefix = string.match(string.sub(KEYS[1], 1, -34), '^{(.*):%d+}$')
  redis.call('PUBLISH', '{' .. prefix .. '}:changed', key .. struct.pack('<I8', version + 1))
end
return 'o'
