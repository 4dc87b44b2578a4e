-- Claims an intent. Mirrors `transition::claim`; the conformance suite holds the two together.
-- KEYS: record, index, and for a second look-up the content's pointer.
-- ARGV: numbers and the times to live of a cancelled call and of an unknown outcome, rest of the
-- record, life of the key.
-- Names in capitals are limits, written in as numbers before the server sees the script.
-- Written for the first claim of a key: what only others need is unpacked only for them.
local now, lease, cap, mark, safe, again, uwin, ewin = struct.unpack('<I8I8I8BBBI8I8', ARGV[1])
if now == 0 then
  local t = redis.call('TIME')
  now = t[1] * 1000 + math.floor(t[2] / 1000)
end
local before = redis.call('GET', KEYS[1])
local version = 0

if before or KEYS[3] then
  local key = string.sub(KEYS[1], -32)
  local function publish(of, v)
    local prefix = string.match(string.sub(KEYS[1], 1, -34), '^{(.*):%d+}$')
    redis.call('PUBLISH', '{' .. prefix .. '}:changed', of .. struct.pack('<I8', v))
  end
  -- Ends a running call without its holder. It is kept from now on, whenever it ended.
  local function settle(state, since, ttl, tail, at, of, rec, flags, v, created, pos)
    local length, begins = struct.unpack('<I4', rec, pos)
    local kept = struct.unpack('<I8', ttl)
    if since < now and kept < 9e15 then
      ttl = struct.pack('<I8', kept + now - since)
    end
    local ended = struct.pack('<c1BI8I8I8I8', state, flags % 2, v + 1, created, since, 0)
      .. ttl .. string.sub(rec, 43, begins + length - 1) .. tail
    local life = math.min(kept, 3e12) + 900000
    redis.call('SET', at, ended, 'PX', string.format('%.0f', life))
    if flags >= 4 then
      publish(of, v + 1)
    end
    return 'E' .. of .. ended
  end
  -- What stands on record about a running call whose holder is lost: nobody knows, since its lease
  -- was over.
  local function lose(lock, ...)
    return settle('u', lock, string.sub(ARGV[1], -8), 'L', ...)
  end
  -- The holder will tell those who wait.
  local function wait(at, of, flags, v, lock)
    if flags < 4 then
      redis.call('SETRANGE', at, 1, string.char(flags + 4))
    end
    return 'W' .. of .. struct.pack('<I8I8', v, lock - now)
  end
  local layout = '<c1BI8I8I8I8I8c16Hc0Hc0'

  if before then
    local state, flags, v, created, updated, lock, ttl, places, owner, digest, pos =
      struct.unpack(layout, before)
    local _, own_places, own, own_digest = struct.unpack('<I8c16Hc0Hc0', ARGV[2])
    -- Time does not go back for a record, whatever the clock does.
    now = math.max(now, updated)
    version = v
    if state == 'i' or updated + ttl > now then
      -- Lost while it still waited for leave to start: nothing ran.
      local unbegun = state == 'i' and lock <= now and flags % 4 >= 2
      if digest ~= own_digest and state ~= 'c' and not unbegun then
        return 'C' .. digest
      elseif state == 'i' then
        if owner == own then
          return 'G'
        elseif lock > now then
          return wait(KEYS[1], key, flags, v, lock)
        elseif not unbegun and (flags % 2 == 0 or safe == 0) then
          return lose(lock, KEYS[1], key, before, flags, v, created, pos)
        elseif flags >= 4 then
          publish(key, v + 1)
        end
      elseif state == 'd'
        or (state == 'f' and (again == 0 or flags % 4 < 2))
        or (state == 'u' and (again == 0 or safe == 0)) then
        return 'E' .. key .. before
      end
    end
    if places ~= own_places then
      redis.call('SREM', KEYS[2], key .. places)
    end
  end

  if KEYS[3] then
    local other = redis.call('GET', KEYS[3])
    local at = other and string.sub(KEYS[1], 1, -33) .. other
    local rec = other and other ~= key and redis.call('GET', at)
    if rec then
      local state, flags, v, created, updated, lock, ttl, places, owner, digest, pos =
        struct.unpack(layout, rec)
      now = math.max(now, updated)
      if state == 'i' then
        if lock > now then
          return wait(at, other, flags, v, lock)
        elseif flags % 4 < 2 then
          local doubt = lose(lock, at, other, rec, flags, v, created, pos)
          if now - lock < uwin then
            return doubt
          end
        else
          -- Lost while it waited: should its holder come back, it may not begin any more.
          settle('c', now, string.sub(ARGV[1], -16, -9), '', at, other, rec, flags, v, created, pos)
        end
      elseif updated + ttl > now and ((state == 'u' and now - updated < uwin)
        or (state == 'd' and now - updated < ewin)) then
        return 'E' .. other .. rec
      end
    end
    redis.call('SET', KEYS[3], key, 'PX', ARGV[3])
  end
end

if cap > 0 and not before then
  -- Room is made by what has expired, else by what ended first, of a sample as large as any small
  -- store. Not all of it at once where a bound was lowered: one claim must not hold the server up.
  local base, tries, rounds, made = string.sub(KEYS[2], 1, -2), 0, 0, false
  while redis.call('SCARD', KEYS[2]) >= cap do
    rounds = rounds + 1
    if rounds > EVICTION_ROUNDS_MAX or tries > EVICTION_TRIES_MAX then
      if made then
        break
      end
      return 'F'
    end
    local oldest, oldest_at, dropped
    for _, m in ipairs(redis.call('SRANDMEMBER', KEYS[2], EVICTION_SAMPLE)) do
      local at = base .. 'r' .. string.sub(m, 1, 32)
      local head = redis.call('GETRANGE', at, 0, 41)
      local state, updated, lock, ttl = 'd', 0, 0, 0
      if head ~= '' then
        local _
        state, _, _, _, updated, lock, ttl = struct.unpack('<c1BI8I8I8I8I8', head)
      end
      if updated + ttl <= now
        and (state ~= 'i' or (lock <= now and updated + 2 * ttl <= now)) then
        redis.call('DEL', at)
        redis.call('SREM', KEYS[2], m)
        dropped = true
      elseif state ~= 'i' and state ~= 'u' and (not oldest or updated < oldest_at) then
        oldest, oldest_at = m, updated
      end
    end
    if not dropped and oldest then
      redis.call('DEL', base .. 'r' .. string.sub(oldest, 1, 32))
      redis.call('SREM', KEYS[2], oldest)
      dropped = true
    end
    if dropped then
      made = true
    else
      tries = tries + 1
    end
  end
end

redis.call('SET', KEYS[1],
  struct.pack('<c1BI8I8I8I8', 'i', mark, version + 1, now, now, now + lease) .. ARGV[2], 'PX', ARGV[3])
redis.call('SADD', KEYS[2], string.sub(KEYS[1], -32) .. string.sub(ARGV[2], 9, 24))
return 'G'
