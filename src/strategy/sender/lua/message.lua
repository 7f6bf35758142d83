-- Messages and offers as texts. A message: number:chat:due:deadline:class:kind:method:from_user. An offer:
-- slot:ticket:tries:refusals:leased_until:message.

local function message_read(text)
  local chat, deadline, class, kind, method, user =
    text:match('^%d+:(%d+):%d+:(%d+):(%d+):(%d+):(%d+):(%d)$')
  return {
    text = text,
    chat = chat,
    deadline = tonumber(deadline),
    class = tonumber(class),
    kind = tonumber(kind),
    method = method,
    from_user = user == '1',
  }
end

local function message_number(text)
  return text:match('^%d+')
end

local function offer_write(offer)
  return table.concat({
    offer.slot, offer.ticket, int(offer.tries), int(offer.refusals), int(offer.leased_until), offer.message.text,
  }, ':')
end

local function offer_read(text)
  local slot, ticket, tries, refusals, leased_until, message =
    text:match('^(%d+):(%d+):(%d+):(%d+):(%d+):(.*)$')
  return {
    slot = slot,
    ticket = ticket,
    tries = tonumber(tries),
    refusals = tonumber(refusals),
    leased_until = tonumber(leased_until),
    message = message_read(message),
  }
end

-- One more call that ended so; at most 255 are counted.
local function count_call(why, tries, refusals)
  if why == 'refused' then refusals = math.min(refusals + 1, 255) end
  if why == 'in-vain' then tries = math.min(tries + 1, 255) end
  return tries, refusals
end
