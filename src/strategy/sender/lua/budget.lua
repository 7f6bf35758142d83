-- A sender's budget, as in limiter::budget: a token bucket on the store's clock, with a ramp if it has one, or a level and
-- a timestamp on the clocks of its callers. One hash.
local MICRO = 1000000

local function budget_load(key, settings)
  local fields = redis.call('HMGET', key, 'q', 'r', 'level', 'stamp', 'rate', 'from', 'next')
  return {
    key = key,
    settings = settings,
    q = number(fields[1], 0), r = number(fields[2], 0),
    level = number(fields[3]), stamp = number(fields[4]),
    rate = number(fields[5]), from = number(fields[6]), next = number(fields[7], 0),
  }
end

local function budget_save(budget)
  local fields = { 'q', budget.q, 'r', budget.r, 'next', budget.next }
  if budget.level then
    for _, field in ipairs({ 'level', budget.level, 'stamp', budget.stamp }) do fields[#fields + 1] = field end
  end
  if budget.rate then
    for _, field in ipairs({ 'rate', budget.rate, 'from', budget.from }) do fields[#fields + 1] = field end
  else
    redis.call('HDEL', budget.key, 'rate', 'from')
  end
  redis.call('HSET', budget.key, unpack(fields))
end

-- The whole part of a * b / 1,000,000, exact while it is below 2^53.
local function millionths(a, b)
  local al, bl = math.fmod(a, MICRO), math.fmod(b, MICRO)
  local ah, bh = (a - al) / MICRO, (b - bl) / MICRO
  return ah * bh * MICRO + ah * bl + al * bh + quotient(al * bl, MICRO)
end

-- As in limiter::ramp: rates are millionths of a message a second; without a rate of its own it is at the top.
local function ramp_rate(budget, at)
  local ramp = budget.settings.ramp
  if not budget.rate then return ramp.full end
  return math.min(budget.rate + millionths(ramp.step, math.max(0, at - budget.from)), ramp.full)
end

local function ramp_wait(budget)
  if not budget.settings.ramp or not budget.rate then return 0 end
  return until_then(math.max(budget.next, budget.from))
end

local function ramp_take(budget, at)
  if not budget.settings.ramp then return end
  local rate = ramp_rate(budget, at)
  if rate >= budget.settings.ramp.full then
    budget.rate, budget.from = nil, nil
    return
  end
  budget.next = later(math.max(budget.next, at), quotient(MICRO * MICRO, rate))
end

-- How long until a message may go; nothing is taken.
local function budget_wait(budget)
  local bucket = budget.settings.bucket
  return math.max(bucket and bucket_wait(bucket, budget.q, budget.r) or 0, ramp_wait(budget))
end

-- As in limiter::level_bucket, at the caller's instant.
local function level_take(budget, own)
  local level = budget.settings.level
  local units, stamp = budget.level or level.capacity, budget.stamp or own
  units = math.min(units + math.max(0, own - stamp) * level.count, level.capacity)
  local missing = math.max(0, level.token - units)
  if missing == 0 then units = units - level.token end
  budget.level, budget.stamp = units, own
  return quotient(missing + level.count - 1, level.count)
end

-- How long until a message may go; zero means that a token was taken for it.
local function budget_take(budget, own)
  local wait = ramp_wait(budget)
  if wait > 0 then return wait end
  local bucket = budget.settings.bucket
  if bucket then
    wait = bucket_wait(bucket, budget.q, budget.r)
    if wait > 0 then return wait end
    budget.q, budget.r = bucket_take(bucket, budget.q, budget.r)
  else
    wait = level_take(budget, own)
    if wait > 0 then return wait end
  end
  ramp_take(budget, now)
  return 0
end

-- Takes a token whether it is there or not; how long until the message that it is for may go.
local function budget_reserve(budget)
  local wait = budget_wait(budget)
  local bucket = budget.settings.bucket
  if bucket then budget.q, budget.r = bucket_take(bucket, budget.q, budget.r) end
  ramp_take(budget, later(now, wait))
  return wait
end

-- Puts a token back that was taken for a message that did not go.
local function budget_put_back(budget)
  local bucket, level = budget.settings.bucket, budget.settings.level
  if bucket then
    budget.q, budget.r = bucket_put_back(bucket, budget.q, budget.r)
  elseif budget.level then
    budget.level = math.min(budget.level + level.token, level.capacity)
  end
end

-- A call was refused, until `at`.
local function budget_refuse(budget, at)
  local ramp = budget.settings.ramp
  if not ramp then return end
  if budget.rate and now < budget.from then
    budget.from = math.max(at, budget.from)
    return
  end
  budget.rate = math.max(millionths(ramp_rate(budget, now), ramp.resume), quotient(MICRO, 60))
  budget.from = at
end
