-- KEYS: the pause and its parts. ARGV: its kind, a chat, a method, for how long a call was refused.
pause_refuse(pause_load(KEYS[1], KEYS[2], ARGV[3]), ARGV[4], ARGV[5], later(now, tonumber(ARGV[6])))
return 0
