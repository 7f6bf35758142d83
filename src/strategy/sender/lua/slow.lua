-- KEYS: the budget. ARGV[3]: its settings; ARGV[4]: for how long a call was refused.
local budget = budget_load(KEYS[1], cjson.decode(ARGV[3]))
budget_refuse(budget, later(now, tonumber(ARGV[4])))
budget_save(budget)
return 0
