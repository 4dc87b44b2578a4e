-- Forgets the given records, unless they run.
-- KEYS: index. ARGV: shortest life of the mark of a clearing, members of the index.
local base, forgotten, t = string.sub(KEYS[1], 1, -2), 0, redis.call('TIME')
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
      local mark = base .. 't' .. key .. owner
      local before = tonumber(redis.call('GET', mark) or '') or 0
      local when = math.max(before + 1, t[1] * 1000000 + t[2])
      redis.call('SET', mark, string.format('%.0f', when), 'PX', life)
      forgotten = forgotten + 1
    end
    redis.call('DEL', at)
    redis.call('SREM', KEYS[1], m)
  end
end
return forgotten
