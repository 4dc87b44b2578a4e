-- Looks at a bounded part of the index, and forgets what has expired and what is not there any more.
-- KEYS: index. ARGV: time or 0, cursor, how many. Answers with the next cursor and the number forgotten.
local now = tonumber(ARGV[1])
if now == 0 then
  local t = redis.call('TIME')
  now = t[1] * 1000 + math.floor(t[2] / 1000)
end
local base, forgotten = string.sub(KEYS[1], 1, -2), 0
local page = redis.call('SSCAN', KEYS[1], ARGV[2], 'COUNT', ARGV[3])
for _, m in ipairs(page[2]) do
  local at = base .. 'r' .. string.sub(m, 1, 32)
  local head = redis.call('GETRANGE', at, 0, 41)
  local forgettable = head == ''
  if not forgettable then
    local state, _, _, _, updated, lock, ttl = struct.unpack('<c1BI8I8I8I8I8', head)
    forgettable = updated + ttl <= now
      and (state ~= 'i' or (lock <= now and updated + 2 * ttl <= now))
  end
  if forgettable then
    redis.call('DEL', at)
    forgotten = forgotten + redis.call('SREM', KEYS[1], m)
  end
end
return { page[1], forgotten }
