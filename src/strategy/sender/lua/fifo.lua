-- One queue for everything, by date, as in limiter::fifo.
--
-- `waiting` is a sorted set of slots by date and then as they came; `messages` and `slots` (ticket:tries:refusals) are
-- hashes by slot; `free` is a list of slots that can be used again; `buckets` (where there is a pace) and `dead` are by
-- chat.
local SLOTS, FREE, WAITING, BUCKETS, DEAD = KEYS[8], KEYS[9], KEYS[10], KEYS[11], KEYS[12]
local queue = {}

local function slot_read(slot)
  local text = redis.call('HGET', SLOTS, slot)
  if not text then return nil end
  local ticket, tries, refusals = text:match('^(%d+):(%d+):(%d+)$')
  return { ticket = ticket, tries = tonumber(tries), refusals = tonumber(refusals) }
end

local function slot_write(slot, ticket, tries, refusals)
  redis.call('HSET', SLOTS, slot, table.concat({ ticket, int(tries), int(refusals) }, ':'))
end

local function slot_wait(slot, at)
  local pushed = redis.call('HINCRBY', META, 'pushed', 1)
  redis.call('ZADD', WAITING, at, string.format('%010.0f:%s', pushed, slot))
end

local function slot_free(slot)
  redis.call('HDEL', SLOTS, slot)
  redis.call('HDEL', MESSAGES, slot)
  redis.call('RPUSH', FREE, slot)
end

local function chat_bucket(chat)
  local text = redis.call('HGET', BUCKETS, chat)
  if not text then return 0, 0 end
  local q, r = text:match('^(%d+):(%d+)$')
  return tonumber(q), tonumber(r)
end

local function chat_bucket_write(chat, q, r)
  redis.call('HSET', BUCKETS, chat, int(q) .. ':' .. int(r))
end

local function pace_of(message)
  return S.pace and S.pace[message.kind + 1]
end

-- The slot of an offer, if it is still in flight.
local function in_flight(offer)
  local slot = slot_read(offer.slot)
  if not slot or slot.ticket ~= offer.ticket then return nil end
  local held = redis.call('HGET', MESSAGES, offer.slot)
  return message_number(held) == message_number(offer.message.text) and slot or nil
end

-- A message joins; whether its chat can receive.
function queue.push(message, _, revives)
  if redis.call('SISMEMBER', DEAD, message.chat) == 1 then
    if not (revives and message.from_user) then return false end
    redis.call('SREM', DEAD, message.chat)
  end
  local slot = redis.call('RPOP', FREE) or int(redis.call('HINCRBY', META, 'slots', 1) - 1)
  redis.call('HSET', MESSAGES, slot, message.text)
  slot_write(slot, '0', 0, 0)
  slot_wait(slot, now)
  return true
end

local function leaves_unsent(message)
  return message.deadline < now or redis.call('SISMEMBER', DEAD, message.chat) == 1
end

-- The next message that may go; those that leave unsent are appended to `left`.
function queue.pop(left)
  while true do
    local head = redis.call('ZRANGE', WAITING, 0, 0, 'WITHSCORES')
    if not head[1] or tonumber(head[2]) > now then return nil end
    local slot = head[1]:sub(12)
    local message = message_read(redis.call('HGET', MESSAGES, slot))
    if leaves_unsent(message) then
      redis.call('ZREM', WAITING, head[1])
      slot_free(slot)
      left[#left + 1] = message
    else
      local pace = pace_of(message)
      if pace then
        local q, r = chat_bucket(message.chat)
        if bucket_wait(pace, q, r) > 0 then return nil end
        chat_bucket_write(message.chat, bucket_take(pace, q, r))
      end
      redis.call('ZREM', WAITING, head[1])
      local leased_until, ticket = lease_begin(S, slot)
      local known = slot_read(slot)
      slot_write(slot, ticket, known.tries, known.refusals)
      return {
        slot = slot, ticket = ticket, tries = known.tries, refusals = known.refusals,
        leased_until = leased_until, message = message,
      }
    end
  end
end

function queue.finish(offer)
  if in_flight(offer) then slot_free(offer.slot) end
end

-- The message waits again; whether it was still in flight.
function queue.postpone(offer, at, why)
  local slot = in_flight(offer)
  if not slot then return false end
  slot_write(offer.slot, '0', count_call(why, slot.tries, slot.refusals))
  local pace = why == 'held-back' and pace_of(offer.message)
  if pace then
    local q, r = chat_bucket(offer.message.chat)
    chat_bucket_write(offer.message.chat, bucket_put_back(pace, q, r))
  end
  slot_wait(offer.slot, at)
  return true
end

function queue.close(offer)
  if not in_flight(offer) then return end
  redis.call('SADD', DEAD, offer.message.chat)
  queue.finish(offer)
end

-- A message whose lease has ended while it was in flight.
function queue.overdue()
  while true do
    local leased_until, slot, ticket = lease_ended()
    if not leased_until then return nil end
    local known = slot_read(slot)
    if known and known.ticket == ticket then
      return {
        slot = slot, ticket = ticket, tries = known.tries, refusals = known.refusals,
        leased_until = leased_until, message = message_read(redis.call('HGET', MESSAGES, slot)),
      }
    end
  end
end

-- When the next message may go, or leaves unsent.
function queue.next_at()
  local head = redis.call('ZRANGE', WAITING, 0, 0, 'WITHSCORES')
  if not head[1] then return NEVER end
  local at = tonumber(head[2])
  if not S.pace or at > now then return at end
  local message = message_read(redis.call('HGET', MESSAGES, head[1]:sub(12)))
  if leaves_unsent(message) then return at end
  local q, r = chat_bucket(message.chat)
  return now + bucket_wait(pace_of(message), q, r)
end
