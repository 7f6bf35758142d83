-- KEYS: the pause and its parts. ARGV: its kind, a chat, a method. For how long a call is not to be made.
return until_then(pause_until(pause_load(KEYS[1], KEYS[2], ARGV[3]), ARGV[4], ARGV[5]))
