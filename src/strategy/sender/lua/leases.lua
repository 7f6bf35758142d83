-- Messages in flight, as in limiter::leases: a list in the order in which leases end.

-- Begins a lease: until when, and its ticket.
local function lease_begin(settings, slot)
  local ticket, ends = int(redis.call('HINCRBY', META, 'given', 1)), later(now, settings.lease)
  if ends < NEVER then redis.call('RPUSH', LEASES, table.concat({ int(ends), slot, ticket }, ':')) end
  return ends, ticket
end

-- The next lease that has ended: until when, slot, ticket.
local function lease_ended()
  local first = redis.call('LINDEX', LEASES, 0)
  if not first then return nil end
  local ends, slot, ticket = first:match('^(%d+):(%d+):(%d+)$')
  if tonumber(ends) > now then return nil end
  redis.call('LPOP', LEASES)
  return tonumber(ends), slot, ticket
end
