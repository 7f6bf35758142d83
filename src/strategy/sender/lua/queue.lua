-- What the scripts of a queue have in common: its keys, its settings, and what lies beside it.
--
-- KEYS: the budget, the pause and its parts, then of the queue `meta`, `messages`, `leases`, `answers` and what is its own
-- kind's. ARGV[3]: the settings of `Policy`, as JSON.
local META, MESSAGES, LEASES, ANSWERS = KEYS[4], KEYS[5], KEYS[6], KEYS[7]
local S = cjson.decode(ARGV[3])
local budget = S.budget and budget_load(KEYS[1], S.budget)
local pause = S.pause and pause_load(KEYS[2], KEYS[3], S.pause)
-- What becomes of messages beside the queue, in order: a letter and a message.
local told = {}

local function tell(what, message)
  told[#told + 1] = what .. message.text
end

-- How long until the budget has a token.
local function free_in()
  return budget and budget_wait(budget) or 0
end

-- For how long nothing at all is to be sent.
local function paused()
  return pause and until_then(pause.all) or 0
end
