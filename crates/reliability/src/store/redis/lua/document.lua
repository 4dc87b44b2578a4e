-- Makes, changes, lists, removes and forgets documents; each a hash, with indexes by kind, by group and by end.
-- KEYS: the base of all names. ARGV: step, time or 0, then what the step needs.
local base, step, now = KEYS[1], ARGV[1], tonumber(ARGV[2])
if now == 0 then
  local t = redis.call('TIME')
  now = t[1] * 1000 + math.floor(t[2] / 1000)
end
local function document(kind, id) return base .. ':d:' .. kind .. '\0' .. id end
local function of_kind(kind) return base .. ':k:' .. kind end
local function of_group(kind, group) return base .. ':g:' .. kind .. '\0' .. group end
local ends, count = base .. ':ends', base .. ':count'

local function drop(kind, id)
  local group = redis.call('HGET', document(kind, id), 'g')
  redis.call('ZREM', of_kind(kind), id)
  redis.call('ZREM', ends, kind .. '\0' .. id)
  if group then
    redis.call('ZREM', of_group(kind, group), id)
    redis.call('DEL', document(kind, id))
    redis.call('DECR', count)
  end
end

-- The fields of one that is there; one whose time is over is not.
local function find(kind, id)
  local found = redis.call('HMGET', document(kind, id), 'g', 'v', 'b', 'c', 'u', 'e')
  if not found[1] then
    return nil
  end
  if found[6] ~= '' and tonumber(found[6]) <= now then
    drop(kind, id)
    return nil
  end
  return { id, found[1], found[2], found[3], found[4], found[5], found[6] }
end

local function sweep(most)
  local over = redis.call('ZRANGEBYSCORE', ends, '-inf', now, 'LIMIT', 0, most)
  for _, name in ipairs(over) do
    local at = string.find(name, '\0', 1, true)
    drop(string.sub(name, 1, at - 1), string.sub(name, at + 1))
  end
  return #over
end

local function write(kind, id, group, version, body, created, expires)
  redis.call('HSET', document(kind, id), 'g', group, 'v', version, 'b', body, 'c', created, 'u', string.format('%d', now), 'e', expires)
  redis.call('ZADD', of_kind(kind), 0, id)
  redis.call('ZADD', of_group(kind, group), 0, id)
  if expires == '' then
    redis.call('ZREM', ends, kind .. '\0' .. id)
  else
    redis.call('ZADD', ends, expires, kind .. '\0' .. id)
  end
end

local kind, id = ARGV[3], ARGV[4]
if step == 'create' then
  local there = find(kind, id)
  if there then
    return { 'there', there }
  end
  local most = tonumber(ARGV[8])
  if tonumber(redis.call('GET', count) or '0') >= most and sweep(100) == 0 then
    return { 'full' }
  end
  write(kind, id, ARGV[5], '1', ARGV[6], string.format('%d', now), ARGV[7])
  redis.call('INCR', count)
  return { 'done', find(kind, id) or {} }
elseif step == 'get' then
  local there = find(kind, id)
  return there and { 'there', there } or { 'gone' }
elseif step == 'replace' then
  local there = find(kind, id)
  if not there then
    return { 'gone' }
  end
  if there[3] ~= ARGV[5] then
    return { 'there', there }
  end
  redis.call('ZREM', of_group(kind, there[2]), id)
  write(kind, id, ARGV[6], string.format('%d', tonumber(there[3]) + 1), ARGV[7], there[5], ARGV[8])
  return { 'done', find(kind, id) or {} }
elseif step == 'remove' then
  if not find(kind, id) then
    return { 'gone' }
  end
  drop(kind, id)
  return { 'done' }
elseif step == 'list' then
  -- ARGV: kind, whether by group, group, whether after, after, most.
  local index = ARGV[4] == '1' and of_group(kind, ARGV[5]) or of_kind(kind)
  local from, most, found = ARGV[6] == '1' and '(' .. ARGV[7] or '-', tonumber(ARGV[8]), {}
  while #found < most do
    local ids = redis.call('ZRANGEBYLEX', index, from, '+', 'LIMIT', 0, most)
    if #ids == 0 then
      break
    end
    for _, one in ipairs(ids) do
      local there = #found < most and find(kind, one)
      if there then
        found[#found + 1] = there
      end
      from = '(' .. one
    end
  end
  return { 'done', unpack(found) }
end
return { 'done', sweep(tonumber(ARGV[3])) }
