-- A message in flight is done with, or waits for its date. As `Policy::finish`.
--
-- ARGV from 4 on: the offer, how it ended (`done`, `dead`, `waits`), for how long it waits and why, for how long it was
-- refused or nothing, whether this may have been told before. Replies with how long until something can be sent next, and
-- what became of messages.
local offer, ending, wait, why = offer_read(ARGV[4]), ARGV[5], tonumber(ARGV[6]), ARGV[7]
local refused, is_again = tonumber(ARGV[8]), ARGV[9] == '1'

if refused then
  local at = later(now, refused)
  if pause then pause_refuse(pause, offer.message.chat, offer.message.method, at) end
  if budget then budget_refuse(budget, at) end
end
if ending == 'done' then
  queue.finish(offer)
elseif ending == 'dead' then
  queue.close(offer, S.revive)
else
  local waits = queue.postpone(offer, later(now, wait), why)
  if waits and why == 'held-back' and budget then budget_put_back(budget) end
  -- It had left the queue before it was sent, so nobody else has it, whatever became of its offer: unless this was told
  -- and done before.
  if S.mark_before and (waits or not is_again) then
    local dead = not waits and not queue.push(offer.message, S.ranks[offer.message.class + 1], false)
    tell(dead and 'D' or 'S', offer.message)
  end
end
if budget then budget_save(budget) end
local next_at = queue.next_at()
if next_at >= NEVER then return { NEVER, told } end
return { math.max(until_then(next_at), free_in(), paused()), told }
