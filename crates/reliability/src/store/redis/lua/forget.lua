-- Forgets the given records, unless they run. KEYS: index. ARGV: members of the index.
local base, forgotten = string.sub(KEYS[1], 1, -2), 0
for _, m in ipairs(ARGV) do
  local at = base .. 'r' .. string.sub(m, 1, 32)
  local state = redis.call('GETRANGE', at, 0, 0)
  if state ~= 'i' then
    redis.call('DEL', at)
    redis.call('SREM', KEYS[1], m)
    if state ~= '' then
      forgotten = forgotten + 1
    end
  end
end
return forgotten
