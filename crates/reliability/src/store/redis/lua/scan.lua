-- One bounded page of the index: the members that fit, and the head of each one's record.
-- KEYS: index. ARGV: cursor, how many, place of a session or nothing, place of a tool or nothing.
local base, found = string.sub(KEYS[1], 1, -2), {}
local page = redis.call('SSCAN', KEYS[1], ARGV[1], 'COUNT', ARGV[2])
for _, m in ipairs(page[2]) do
  if (ARGV[3] == '' or string.sub(m, 33, 40) == ARGV[3])
    and (ARGV[4] == '' or string.sub(m, 41, 48) == ARGV[4]) then
    found[#found + 1] = m
    found[#found + 1] = redis.call('GETRANGE', base .. 'r' .. string.sub(m, 1, 32), 0, 41)
  end
end
return { page[1], found }
