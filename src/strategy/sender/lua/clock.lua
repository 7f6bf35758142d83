-- What every script begins with: what time it is, and how times are counted.
--
-- Times are whole microseconds from the start of the run, and distances are whole microseconds. Lua has doubles, which
-- hold whole numbers up to 2^53: that stands for "never" and "for ever".
local NEVER = 9007199254740992
-- In virtual time ARGV[2] is the instant. In real time it is the instant of the server's clock at which the run began.
local IS_REAL = ARGV[1] == 'real'
local now = tonumber(ARGV[2])
if IS_REAL then
  local time = redis.call('TIME')
  now = math.max(0, tonumber(time[1]) * 1000000 + tonumber(time[2]) - now)
end

-- A whole number as text. `..` would round it to 14 digits.
local function int(number)
  return string.format('%.0f', number)
end

-- The instant `wait` after `at`.
local function later(at, wait)
  if at >= NEVER or wait >= NEVER then return NEVER end
  return math.min(at + wait, NEVER - 1)
end

-- How long it is until `at`; no time at all if that is past.
local function until_then(at)
  return math.max(0, at - now)
end

-- The whole part of a / b.
local function quotient(a, b)
  return (a - math.fmod(a, b)) / b
end

-- A number from a field of a hash, which may be missing.
local function number(field, default)
  return field and tonumber(field) or default
end
