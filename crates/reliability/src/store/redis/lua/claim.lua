-- Claims an intent. Mirrors `transition::claim`; the conformance suite holds the two together.
-- KEYS: record, index, session's set, tool's set, and for a second look-up the content's pointer.
-- ARGV: numbers, key with the places of its session and tool, owner, digest, rest of the record,
--       time to live of an unknown outcome as it is stored, of the key, of its key, channel.
local now, lease, cap, mark, safe, again, uwin, ewin = struct.unpack('<I8I8I8BBBI8I8', ARGV[1])
if now == 0 then
  local t = redis.call('TIME')
  now = t[1] * 1000 + math.floor(t[2] / 1000)
end
local member = ARGV[2]
local before = redis.call('GET', KEYS[1])
local version = 0

if before or KEYS[5] then
  -- What stands on record about a running call whose holder is lost: nobody knows.
  local function lose(at, key, rec, flags, v, created, pos, places)
    local length, begins = struct.unpack('<I4', rec, pos)
    local unknown = struct.pack('<c1BI8I8I8I8', 'u', flags % 2, v + 1, created, now, 0)
      .. ARGV[6] .. string.sub(rec, 43, begins + length - 1) .. 'L'
    redis.call('SET', at, unknown, 'PX', ARGV[8])
    redis.call('ZADD', KEYS[2], 1e15 + now, key .. places)
    if flags >= 4 then
      redis.call('PUBLISH', ARGV[9], key .. struct.pack('<I8', v + 1))
    end
    return 'E' .. key .. unknown
  end
  -- The holder will tell those who wait.
  local function wait(at, key, flags, v, lock)
    if flags < 4 then
      redis.call('SETRANGE', at, 1, string.char(flags + 4))
    end
    return 'W' .. key .. struct.pack('<I8I8', v, lock - now)
  end
  local layout = '<c1BI8I8I8I8I8c8c8Hc0Hc0'

  if before then
    local state, flags, v, created, updated, lock, ttl, session, tool, owner, digest, pos =
      struct.unpack(layout, before)
    -- Time does not go back for a record, whatever the clock does.
    now = math.max(now, updated)
    version = v
    local key, places = string.sub(member, 1, 32), session .. tool
    if state == 'i' or updated + ttl > now then
      -- Lost while it still waited for leave to start: nothing ran.
      local unbegun = state == 'i' and lock <= now and flags % 4 >= 2
      if digest ~= ARGV[4] and state ~= 'c' and not unbegun then
        return 'C' .. digest
      elseif state == 'i' then
        if owner == ARGV[3] then
          return 'G'
        elseif lock > now then
          return wait(KEYS[1], key, flags, v, lock)
        elseif not unbegun and (flags % 2 == 0 or safe == 0) then
          return lose(KEYS[1], key, before, flags, v, created, pos, places)
        elseif flags >= 4 then
          redis.call('PUBLISH', ARGV[9], key .. struct.pack('<I8', v + 1))
        end
      elseif state == 'd'
        or (state == 'f' and (again == 0 or flags % 4 < 2))
        or (state == 'u' and (again == 0 or safe == 0)) then
        return 'E' .. key .. before
      end
    end
    if key .. places ~= member then
      local base = string.sub(KEYS[2], 1, -2)
      redis.call('ZREM', KEYS[2], key .. places)
      redis.call('SREM', base .. 's' .. session, key .. places)
      redis.call('SREM', base .. 't' .. tool, key .. places)
    end
  end

  if KEYS[5] then
    local other = redis.call('GET', KEYS[5])
    local at = other and string.sub(KEYS[1], 1, -33) .. other
    local rec = other and other ~= string.sub(member, 1, 32) and redis.call('GET', at)
    if rec then
      local state, flags, v, created, updated, lock, ttl, session, tool, owner, digest, pos =
        struct.unpack(layout, rec)
      now = math.max(now, updated)
      if state == 'i' then
        if lock > now then
          return wait(at, other, flags, v, lock)
        elseif flags % 4 < 2 then
          return lose(at, other, rec, flags, v, created, pos, session .. tool)
        end
      elseif updated + ttl > now and ((state == 'u' and now - updated < uwin)
        or (state == 'd' and now - updated < ewin)) then
        return 'E' .. other .. rec
      end
    end
    redis.call('SET', KEYS[5], string.sub(member, 1, 32), 'PX', ARGV[7])
  end
end

if not before and redis.call('ZCARD', KEYS[2]) >= cap then
  -- Room is made by what ended first, else by what has expired among the rest.
  local base = string.sub(KEYS[2], 1, -2)
  local function drop(m)
    redis.call('DEL', base .. 'r' .. string.sub(m, 1, 32))
    redis.call('ZREM', KEYS[2], m)
    redis.call('SREM', base .. 's' .. string.sub(m, 33, 40), m)
    redis.call('SREM', base .. 't' .. string.sub(m, 41, 48), m)
  end
  local function drop_expired(from, to)
    local dropped = false
    for _, m in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], from, to, 'LIMIT', 0, 64)) do
      local head = redis.call('GETRANGE', base .. 'r' .. string.sub(m, 1, 32), 0, 41)
      local forgettable = head == ''
      if not forgettable then
        local state, _, _, _, updated, lock, ttl = struct.unpack('<c1BI8I8I8I8I8', head)
        forgettable = updated + ttl <= now
          and (state ~= 'i' or (lock <= now and updated + 2 * ttl <= now))
      end
      if forgettable then
        drop(m)
        dropped = true
      end
    end
    return dropped
  end
  while redis.call('ZCARD', KEYS[2]) >= cap do
    local first = redis.call('ZRANGE', KEYS[2], 0, 0, 'WITHSCORES')
    if first[2] and tonumber(first[2]) < 1e15 then
      drop(first[1])
    elseif not (drop_expired(1e15, '(2e15') or drop_expired(2e15, '+inf')) then
      return 'F'
    end
  end
end

redis.call('SET', KEYS[1],
  struct.pack('<c1BI8I8I8I8', 'i', mark, version + 1, now, now, now + lease) .. ARGV[5], 'PX', ARGV[7])
redis.call('ZADD', KEYS[2], 2e15 + now, member)
redis.call('SADD', KEYS[3], member)
redis.call('SADD', KEYS[4], member)
return 'G'
