-- Notes calls, and takes the place of a retry where there is one.
-- KEYS: counts. ARGV: calls, 1 for a retry, window in ms, percent, reserve.
local t = redis.call('TIME')
local tick = math.floor((t[1] * 1000 + t[2] / 1000) / (tonumber(ARGV[3]) / 10))
local function field(kind, back)
  return kind .. string.format('%.0f', tick - back)
end
if ARGV[1] ~= '0' then
  redis.call('HINCRBY', KEYS[1], field('c', 0), ARGV[1])
end
local fields, old = {}, {}
for back = 0, 9 do
  fields[#fields + 1] = field('c', back)
  fields[#fields + 1] = field('r', back)
  old[#old + 1] = field('c', back + 10)
  old[#old + 1] = field('r', back + 10)
end
local counts, calls, retries = redis.call('HMGET', KEYS[1], unpack(fields)), 0, 0
for i = 1, #counts, 2 do
  calls = calls + (tonumber(counts[i]) or 0)
  retries = retries + (tonumber(counts[i + 1]) or 0)
end
local taken = 0
if ARGV[2] == '1' and retries < math.floor(calls * ARGV[4] / 100) + ARGV[5] then
  redis.call('HINCRBY', KEYS[1], field('r', 0), 1)
  taken = 1
end
redis.call('HDEL', KEYS[1], unpack(old))
redis.call('PEXPIRE', KEYS[1], ARGV[3] * 2)
return taken
