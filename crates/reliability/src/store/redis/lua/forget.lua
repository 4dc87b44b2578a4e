-- Forgets the given records, unless they run.
-- KEYS: index. ARGV: shortest life of the mark of a clearing, members of the index.
local base, forgotten = string.sub(KEYS[1], 1, -2), 0
for i = 2, #ARGV do
  local m = ARGV[i]
  local key = string.sub(m, 1, 32)
  local at = base .. 'r' .. key
  local state = redis.call('GETRANGE', at, 0, 0)
  if state ~= 'i' then
    if state ~= '' then
      -- Its holder may still speak: about an outcome that is unknown for as long as it is asked for,
      -- else only because it was not told that its last word was taken, and says it again.
      local length = struct.unpack('<H', redis.call('GETRANGE', at, 58, 59))
      local owner = redis.call('GETRANGE', at, 60, 59 + length)
      local life = tonumber(ARGV[1])
      if state == 'u' then
        life = math.max(redis.call('PTTL', at), life)
      end
      redis.call('SET', base .. 't' .. key .. owner, '', 'PX', life)
      forgotten = forgotten + 1
    end
    redis.call('DEL', at)
    redis.call('SREM', KEYS[1], m)
  end
end
return forgotten
