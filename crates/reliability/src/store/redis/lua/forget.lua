-- Forgets the given records, unless they run. KEYS: index. ARGV: members of the index.
local base, forgotten = string.sub(KEYS[1], 1, -2), 0
for _, m in ipairs(ARGV) do
  local at = base .. 'r' .. string.sub(m, 1, 32)
  local state = redis.call('GETRANGE', at, 0, 0)
  if state ~= 'i' then
    redis.call('DEL', at)
    redis.call('ZREM', KEYS[1], m)
    redis.call('SREM', base .. 's' .. string.sub(m, 33, 40), m)
    redis.call('SREM', base .. 't' .. string.sub(m, 41, 48), m)
    if state ~= '' then
      forgotten = forgotten + 1
    end
  end
end
return forgotten
