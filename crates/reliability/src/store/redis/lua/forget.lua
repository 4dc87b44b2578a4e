-- Forgets the given records, unless they run. KEYS: index. ARGV: members of the index.
local base, forgotten = string.sub(KEYS[1], 1, -2), 0
for _, m in ipairs(ARGV) do
  local key = string.sub(m, 1, 32)
  local at = base .. 'r' .. key
  local state = redis.call('GETRANGE', at, 0, 0)
  if state ~= 'i' then
    if state == 'u' then
      -- Its holder may still come back, and must not take the record for one that was lost.
      local length = struct.unpack('<H', redis.call('GETRANGE', at, 58, 59))
      local owner = redis.call('GETRANGE', at, 60, 59 + length)
      local life = math.max(redis.call('PTTL', at), 60000)
      redis.call('SET', base .. 't' .. key .. owner, '', 'PX', life)
    end
    redis.call('DEL', at)
    redis.call('SREM', KEYS[1], m)
    if state ~= '' then
      forgotten = forgotten + 1
    end
  end
end
return forgotten
