-- KEYS: the budget. ARGV[3]: its settings; ARGV[4]: `reserve`, or what time it is for whoever asks.
-- How long until a message may go.
local budget = budget_load(KEYS[1], cjson.decode(ARGV[3]))
local wait = ARGV[4] == 'reserve' and budget_reserve(budget) or budget_take(budget, tonumber(ARGV[4]))
budget_save(budget)
return wait
