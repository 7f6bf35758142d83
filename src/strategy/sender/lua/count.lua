-- KEYS: the counter. ARGV[3]: how long it lives, in milliseconds. In virtual time whoever asks keeps its time to live.
local counted = redis.pcall('INCR', KEYS[1])
if counted == 1 and IS_REAL then redis.call('PEXPIRE', KEYS[1], ARGV[3]) end
return counted
