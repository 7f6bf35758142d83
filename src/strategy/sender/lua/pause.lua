-- A sender's "not before", as in limiter::pause: a hash, and a sorted set of chats or methods by the end of their pause.

local function pause_load(key, parts, kind)
  local fields = redis.call('HMGET', key, 'all', 'parts', 'chat', 'chat_until')
  return {
    key = key,
    parts = parts,
    kind = kind,
    all = number(fields[1], 0),
    parts_until = number(fields[2], 0),
    chat = fields[3], chat_until = number(fields[4], 0),
  }
end

-- When a call with `method` to `chat` may be made.
local function pause_until(pause, chat, method)
  if pause.parts_until <= now then return pause.all end
  local part = redis.call('ZSCORE', pause.parts, pause.kind == 'method' and method or chat)
  return math.max(pause.all, number(part, 0))
end

-- A call with `method` to `chat` was refused, until `at`.
local function pause_refuse(pause, chat, method, at)
  if pause.kind == 'token' or pause.kind == 'host' then
    pause.all = math.max(pause.all, at)
    redis.call('HSET', pause.key, 'all', pause.all)
    return
  end
  -- What is over is thrown away.
  redis.call('ZREMRANGEBYSCORE', pause.parts, '-inf', now)
  redis.call('ZADD', pause.parts, 'GT', at, pause.kind == 'method' and method or chat)
  pause.parts_until = math.max(pause.parts_until, at)
  if pause.kind == 'learned' then
    if pause.chat and now < pause.chat_until then
      if pause.chat ~= chat then pause.all = math.max(pause.all, pause.chat_until, at) end
      pause.chat_until = math.max(pause.chat_until, at)
    else
      pause.chat, pause.chat_until = chat, at
    end
    redis.call('HSET', pause.key, 'all', pause.all, 'chat', pause.chat, 'chat_until', pause.chat_until)
  end
  redis.call('HSET', pause.key, 'parts', pause.parts_until)
end
