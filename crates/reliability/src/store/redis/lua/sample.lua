-- Sizes of some records. KEYS: index. ARGV: how many. Answers with the number of all, of those
-- looked at, their bytes, and how many of them run.
local base, bytes, running = string.sub(KEYS[1], 1, -2), 0, 0
local members = redis.call('SRANDMEMBER', KEYS[1], ARGV[1])
for _, m in ipairs(members) do
  local at = base .. 'r' .. string.sub(m, 1, 32)
  bytes = bytes + redis.call('STRLEN', at)
  if redis.call('GETRANGE', at, 0, 0) == 'i' then
    running = running + 1
  end
end
return { redis.call('SCARD', KEYS[1]), #members, bytes, running }
