-- What has fallen due joins the queue; if pause and budget allow, the next message leaves. As `Policy::exchange`.
--
-- ARGV from 4 on: process, life, question, whether it can send, what time it is for whoever asks, then what has fallen due.
-- Replies with how many of these the question brought, when to ask again (0 when something falls due, 1 then or after a
-- wait, 2 not before it), that wait, whether more waits, how much of the lease is left, the offer or nothing, and what
-- became of messages.
local process, life, question = ARGV[4], ARGV[5], ARGV[6]
local can_send, own = ARGV[7] == '1', tonumber(ARGV[8])
local DUE = 9

-- Whoever did not hear the answer asks again and gets it again. In real time nobody has heard what became of messages
-- either.
local known = redis.call('HGET', ANSWERS, process)
if known then
  local before = {}
  for part in (known .. '|'):gmatch('([^|]*)|') do before[#before + 1] = part end
  if before[1] == life and before[2] == question then
    local left = NEVER
    if before[7] ~= '' then left = until_then(offer_read(before[7]).leased_until) end
    local again = {}
    for text in before[8]:gmatch('[^;]+') do again[#again + 1] = text end
    return {
      tonumber(before[3]), tonumber(before[4]), tonumber(before[5]), tonumber(before[6]), left, before[7], again,
    }
  end
end

-- How long a message waits of which nobody knows whether it arrived; nil if it is not sent again.
local function again(offer)
  if not S.doubt or S.once[offer.message.class + 1] then return nil end
  if S.doubt.attempts and math.min(offer.tries + 1, 255) >= S.doubt.attempts then return nil end
  return S.doubt.pause
end

-- The lease of a message in flight is over.
local function recover(offer)
  local wait = again(offer)
  if S.mark_before then
    queue.finish(offer)
  elseif wait then
    queue.postpone(offer, later(now, wait), 'in-vain')
  else
    queue.finish(offer)
    tell('U', offer.message)
  end
end

-- The next message that may go, with a token, and how long until another may.
local function pop()
  local left, found, wait = {}, nil, 0
  local asks_first = S.callers and not S.release and queue.next_at() <= now
  if asks_first and budget then
    local first = budget_take(budget, own)
    if first > 0 then return nil, first end
  end
  while true do
    local offer = queue.pop(left)
    if not offer then break end
    local at = pause and pause_until(pause, offer.message.chat, offer.message.method) or 0
    if at > now then
      queue.postpone(offer, at, 'held-back')
    else
      local needs = 0
      if budget and not asks_first then needs = budget_take(budget, own) end
      if needs == 0 then
        found = offer
        if not S.release then wait = free_in() end
        break
      elseif math.min(offer.refusals + 1, 255) < S.release.attempts then
        queue.postpone(offer, later(now, S.release.delay), 'refused')
      else
        queue.finish(offer)
        tell('A', offer.message)
      end
    end
  end
  if asks_first and not found and budget then budget_put_back(budget) end
  for _, message in ipairs(left) do tell(message.deadline < now and 'E' or 'D', message) end
  return found, wait
end

for index = DUE, #ARGV do
  local message = message_read(ARGV[index])
  tell('S', message)
  if not queue.push(message, S.ranks[message.class + 1], S.revive) then tell('D', message) end
end
local overdue = queue.overdue()
while overdue do
  recover(overdue)
  overdue = queue.overdue()
end
-- By their own clocks callers learn only by asking, and a framework's worker takes the job first and asks then.
local wait = math.max(paused(), S.release and 0 or free_in())
local offer
if wait == 0 and can_send then offer, wait = pop() end
if offer and S.mark_before then tell('T', offer.message) end
local next_at = queue.next_at()
local ask, ask_in = 2, wait
if next_at >= NEVER then
  ask, ask_in = 0, 0
elseif next_at > now then
  ask, ask_in = 1, math.max(until_then(next_at), wait)
end
if budget then budget_save(budget) end
local more, left = next_at < NEVER and 1 or 0, offer and until_then(offer.leased_until) or NEVER
local brought, text = #ARGV - DUE + 1, offer and offer_write(offer) or ''
redis.call('HSET', ANSWERS, process, table.concat({
  life, question, int(brought), int(ask), int(ask_in), int(more), text, IS_REAL and table.concat(told, ';') or '',
}, '|'))
return { brought, ask, ask_in, more, left, text, told }
