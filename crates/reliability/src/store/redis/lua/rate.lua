-- Takes a place under every limit if it comes soon enough, else under none. Mirrors `rate::step`.
-- KEYS: a number each limit. ARGV: time in microseconds or 0, longest wait, then for each limit the
-- time of one attempt, of a burst, and how far ahead it can be.
local now, longest = tonumber(ARGV[1]), tonumber(ARGV[2])
if now == 0 then
  local t = redis.call('TIME')
  now = t[1] * 1000000 + t[2]
end
local wait, before, after = 0, {}, {}
for i, key in ipairs(KEYS) do
  local at = 3 * i
  local interval, burst, ahead = tonumber(ARGV[at]), tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
  local used = tonumber(redis.call('GET', key) or 0)
  if used < now or used > now + 2 * ahead then
    used = now
  end
  before[i], after[i] = used, used + interval
  wait = math.max(wait, used + interval - now - burst)
end
local granted = wait <= longest
local answer = { granted and 1 or 0, wait }
for i, key in ipairs(KEYS) do
  local used = granted and after[i] or before[i]
  if granted then
    -- Gone when it says nothing any more.
    local life = math.ceil((used - now) / 1000) + 1
    redis.call('SET', key, string.format('%.0f', used), 'PX', string.format('%.0f', life))
  end
  answer[i + 2] = used - now
end
return answer
