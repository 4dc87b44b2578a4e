-- Documents: each is a hash, found by name and by group through two ordered sets; a third has the
-- times at which they are over. One script, so that every step is atomic.
-- KEYS: names, groups, ends. ARGV: the time or 0 for the server's, the step, what the documents'
-- own keys begin with, and what the step needs.
local names, groups, ends = KEYS[1], KEYS[2], KEYS[3]
local now, step, base = tonumber(ARGV[1]), ARGV[2], ARGV[3]
if now == 0 then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end

local function text(number)
  return string.format('%.0f', number)
end

local function is_there(name)
  local over_at = redis.call('ZSCORE', ends, name)
  if over_at and tonumber(over_at) <= now then
    return false
  end
  return redis.call('EXISTS', base .. name) == 1
end

local function forget(name)
  local place = redis.call('HGET', base .. name, 'place')
  if place then
    redis.call('ZREM', groups, place)
  end
  redis.call('ZREM', names, name)
  redis.call('ZREM', ends, name)
  redis.call('DEL', base .. name)
end

local function sweep()
  local over = redis.call('ZRANGEBYSCORE', ends, '-inf', text(now), 'LIMIT', 0, SWEEP_BATCH)
  for _, name in ipairs(over) do
    forget(name)
  end
  return #over
end

local function told(name)
  return redis.call('HMGET', base .. name, 'group', 'version', 'body', 'created', 'updated', 'over')
end

local function put(name, place, group, version, body, created, over)
  local before = redis.call('HGET', base .. name, 'place')
  if before and before ~= place then
    redis.call('ZREM', groups, before)
  end
  redis.call('HSET', base .. name, 'place', place, 'group', group, 'version', version,
    'body', body, 'created', created, 'updated', text(now), 'over', over)
  redis.call('ZADD', names, 0, name)
  redis.call('ZADD', groups, 0, place)
  if over == '' then
    redis.call('ZREM', ends, name)
  else
    redis.call('ZADD', ends, over, name)
  end
end

local name, place, group, body, over = ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[8]
if step == 'create' then
  if is_there(name) then
    return { 0, told(name) }
  end
  forget(name)
  local most = tonumber(ARGV[9])
  if redis.call('ZCARD', names) >= most then
    sweep()
    if redis.call('ZCARD', names) >= most then
      return { -1 }
    end
  end
  put(name, place, group, '1', body, text(now), over)
  return { 1, told(name) }
elseif step == 'replace' then
  if not is_there(name) then
    return { -1 }
  end
  local version = redis.call('HGET', base .. name, 'version')
  if version ~= ARGV[9] then
    return { 0, told(name) }
  end
  local created = redis.call('HGET', base .. name, 'created')
  put(name, place, group, text(version + 1), body, created, over)
  return { 1, told(name) }
elseif step == 'get' then
  if is_there(name) then
    return { 1, told(name) }
  end
  return { -1 }
elseif step == 'remove' then
  local was_there = is_there(name)
  forget(name)
  return { was_there and 1 or 0 }
elseif step == 'sweep' then
  return { sweep() }
elseif step == 'list' then
  -- ARGV: names or groups, from, to, most, how a name begins, bytes of a member before its id.
  local set = ARGV[4] == 'group' and groups or names
  local from, to, most, begins, skip = ARGV[5], ARGV[6], tonumber(ARGV[7]), ARGV[8], tonumber(ARGV[9])
  local found, bytes = {}, 0
  while true do
    local page = redis.call('ZRANGEBYLEX', set, from, to, 'LIMIT', 0, most)
    for _, member in ipairs(page) do
      local id = string.sub(member, skip + 1)
      if is_there(begins .. id) then
        found[#found + 1] = { id, told(begins .. id) }
        bytes = bytes + redis.call('HSTRLEN', base .. begins .. id, 'body')
        if #found >= most or bytes >= PAGE_BYTES_MAX then
          return found
        end
      end
      from = '(' .. member
    end
    if #page < most then
      return found
    end
  end
end
return redis.error_reply('no such step')
