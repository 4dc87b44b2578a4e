-- Extends a holder's lease, in place, and where asked lets a held call begin. Mirrors
-- `transition::renew` and `transition::begin`.
-- KEYS: record. ARGV: numbers and owner.
local rec = redis.call('GET', KEYS[1])
if not rec then
  return 'g'
end
local state, flags, version, _, updated, _, ttl, _, owner =
  struct.unpack('<c1BI8I8I8I8I8c16Hc0', rec)
local now, lease, grace, begins, holder = struct.unpack('<I8I8I8BHc0', ARGV[1])
if owner ~= holder or state ~= 'i' then
  return 'n'
end
if now == 0 then
  local t = redis.call('TIME')
  now = t[1] * 1000 + math.floor(t[2] / 1000)
end
now = math.max(now, updated)
if begins == 1 and flags % 4 >= 2 then
  -- Who saw it wait must not take it for what it was.
  redis.call('SETRANGE', KEYS[1], 1, struct.pack('<BI8', flags - 2, version + 1))
end
redis.call('SETRANGE', KEYS[1], 18, struct.pack('<I8I8', now, now + lease))
-- A key lives as long as an unfinished record may be asked for, in the server's own time.
redis.call('PEXPIRE', KEYS[1], string.format('%.0f', math.min(2 * ttl, 3e12) + grace))
return 'o'
