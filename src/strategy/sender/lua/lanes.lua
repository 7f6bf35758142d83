-- A lane per chat, as in limiter::lanes: strictly first in, first out inside a chat, by rank and then in rotation between
-- chats.
--
-- `messages` and `next` are hashes by the number of a message in the order of pushes: its text, and who comes after it in
-- its lane. `lanes` is a hash by chat. `ready` are lists of chats by rank, in which an entry counts only while its lane is
-- ready and of that rank; `blocked` is a sorted set of chats by date; `closing` is a stack of dead chats whose messages
-- have not left yet.
local LANES, NEXT, BLOCKED, CLOSING = KEYS[8], KEYS[9], KEYS[10], KEYS[11]
local READY = { KEYS[12], KEYS[13], KEYS[14], KEYS[15] }
local EMPTY, IS_READY, IS_BLOCKED, IN_FLIGHT, IS_DEAD = 0, 1, 2, 3, 4
local queue = {}

-- `users` counts the messages of the lane that answer their user. Ticket, tries and refusals are the head's.
local FIELDS = {
  'head', 'tail', 'q', 'r', 'latest1', 'latest2', 'latest3', 'latest4',
  'state', 'rank', 'ticket', 'tries', 'refusals', 'users',
}

local function lane_read(chat)
  local lane, field = { chat = chat }, 0
  local text = redis.call('HGET', LANES, chat)
  if text then
    for value in text:gmatch('%d+') do
      field = field + 1
      lane[FIELDS[field]] = tonumber(value)
    end
  else
    for _, name in ipairs(FIELDS) do lane[name] = 0 end
  end
  return lane
end

local function lane_write(lane)
  local values = {}
  for index, name in ipairs(FIELDS) do values[index] = int(lane[name]) end
  redis.call('HSET', LANES, lane.chat, table.concat(values, ':'))
end

local function head_message(lane)
  return message_read(redis.call('HGET', MESSAGES, int(lane.head)))
end

local function make_ready(lane)
  local rank = 1
  while lane['latest' .. rank] < lane.head do rank = rank + 1 end
  lane.state, lane.rank = IS_READY, rank - 1
  redis.call('RPUSH', READY[rank], lane.chat)
  redis.call('HINCRBY', META, 'ready', 1)
end

-- A lane with messages becomes ready, or waits for its date.
local function resume(lane, kind, at)
  at = math.max(at, now + bucket_wait(S.pace[kind + 1], lane.q, lane.r))
  if at > now then
    -- Ranked when it becomes ready: until then it may be joined by others.
    lane.state, lane.rank = IS_BLOCKED, 0
    redis.call('ZADD', BLOCKED, at, string.format('%010.0f', tonumber(lane.chat)))
  else
    make_ready(lane)
  end
end

-- Takes the head out of a lane.
local function unlink(lane, message)
  local head = int(lane.head)
  if message.from_user then lane.users = lane.users - 1 end
  lane.head = number(redis.call('HGET', NEXT, head), 0)
  redis.call('HDEL', NEXT, head)
  redis.call('HDEL', MESSAGES, head)
  lane.ticket, lane.tries, lane.refusals = 0, 0, 0
  if lane.head == 0 then lane.tail = 0 end
end

-- The head of a lane leaves it, and the lane goes on.
local function advance(lane, message)
  unlink(lane, message)
  if lane.head == 0 then lane.state = EMPTY else resume(lane, head_message(lane).kind, 0) end
end

-- The lane of an offer, if it is still in flight.
local function in_flight(offer)
  local lane = lane_read(offer.slot)
  if lane.state ~= IN_FLIGHT or lane.ticket ~= tonumber(offer.ticket) then return nil end
  local message = head_message(lane)
  if message_number(message.text) ~= message_number(offer.message.text) then return nil end
  return lane, message
end

-- A message joins; whether its chat can receive.
function queue.push(message, rank, revives)
  local lane = lane_read(message.chat)
  if lane.state == IS_DEAD then
    if not (revives and message.from_user) then return false end
    lane.state = EMPTY
    if lane.head ~= 0 then
      -- What has not left yet may go after all.
      redis.call('LREM', CLOSING, 0, message.chat)
      resume(lane, message.kind, 0)
    end
  end
  local pushed = redis.call('HINCRBY', META, 'pushed', 1)
  redis.call('HSET', MESSAGES, int(pushed), message.text)
  lane['latest' .. int(rank + 1)] = pushed
  if message.from_user then lane.users = lane.users + 1 end
  if lane.head == 0 then
    lane.head, lane.tail = pushed, pushed
    resume(lane, message.kind, 0)
  else
    redis.call('HSET', NEXT, int(lane.tail), int(pushed))
    lane.tail = pushed
    if rank < lane.rank then
      lane.rank = rank
      if lane.state == IS_READY then redis.call('RPUSH', READY[rank + 1], message.chat) end
    end
  end
  lane_write(lane)
  return true
end

-- Lanes whose date has come become ready.
local function promote()
  while true do
    local first = redis.call('ZRANGE', BLOCKED, 0, 0, 'WITHSCORES')
    if not first[1] or tonumber(first[2]) > now then return end
    redis.call('ZREM', BLOCKED, first[1])
    local lane = lane_read(int(tonumber(first[1])))
    make_ready(lane)
    lane_write(lane)
  end
end

-- The next message that may go; those that leave unsent are appended to `left`.
function queue.pop(left)
  promote()
  local closing = redis.call('RPOP', CLOSING)
  while closing do
    local lane = lane_read(closing)
    while lane.head ~= 0 do
      local message = head_message(lane)
      left[#left + 1] = message
      unlink(lane, message)
    end
    lane_write(lane)
    closing = redis.call('RPOP', CLOSING)
  end
  for rank, ready in ipairs(READY) do
    local chat = redis.call('LPOP', ready)
    while chat do
      local lane = lane_read(chat)
      if lane.state == IS_READY and lane.rank == rank - 1 then
        redis.call('HINCRBY', META, 'ready', -1)
        local message = head_message(lane)
        if message.deadline >= now then
          lane.state = IN_FLIGHT
          lane.q, lane.r = bucket_take(S.pace[message.kind + 1], lane.q, lane.r)
          local leased_until, ticket = lease_begin(S, chat)
          lane.ticket = tonumber(ticket)
          lane_write(lane)
          return {
            slot = chat, ticket = ticket, tries = lane.tries, refusals = lane.refusals,
            leased_until = leased_until, message = message,
          }
        end
        left[#left + 1] = message
        advance(lane, message)
        lane_write(lane)
      end
      chat = redis.call('LPOP', ready)
    end
  end
  return nil
end

function queue.finish(offer)
  local lane, message = in_flight(offer)
  if not lane then return end
  advance(lane, message)
  lane_write(lane)
end

-- The message stays the head of its lane; whether it was still in flight.
function queue.postpone(offer, at, why)
  local lane, message = in_flight(offer)
  if not lane then return false end
  if why == 'held-back' then
    lane.q, lane.r = bucket_put_back(S.pace[offer.message.kind + 1], lane.q, lane.r)
  end
  lane.tries, lane.refusals = count_call(why, lane.tries, lane.refusals)
  resume(lane, message.kind, at)
  lane_write(lane)
  return true
end

function queue.close(offer, revives)
  local lane, message = in_flight(offer)
  if not lane then return end
  -- The user has written while the call was out.
  if revives and lane.users > (message.from_user and 1 or 0) then
    advance(lane, message)
  else
    unlink(lane, message)
    if lane.head ~= 0 then redis.call('RPUSH', CLOSING, lane.chat) end
    lane.state = IS_DEAD
  end
  lane_write(lane)
end

-- A message whose lease has ended while it was in flight.
function queue.overdue()
  while true do
    local leased_until, chat, ticket = lease_ended()
    if not leased_until then return nil end
    local lane = lane_read(chat)
    if lane.state == IN_FLIGHT and lane.ticket == tonumber(ticket) then
      return {
        slot = chat, ticket = ticket, tries = lane.tries, refusals = lane.refusals,
        leased_until = leased_until, message = head_message(lane),
      }
    end
  end
end

-- When the next message may go.
function queue.next_at()
  if number(redis.call('HGET', META, 'ready'), 0) > 0 or redis.call('EXISTS', CLOSING) == 1 then return now end
  local first = redis.call('ZRANGE', BLOCKED, 0, 0, 'WITHSCORES')
  return number(first[2], NEVER)
end
