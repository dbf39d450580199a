--[[
  Moves a run on from its start, for the attempt that owns it. A phase never goes back by this: a resent command may
  arrive after the finalize.

  KEYS  1 run record (hash)
  ARGV  1 attempt token   2 when, in ms
  Returns  set | foreign_attempt
]]
local run = redis.call('HMGET', KEYS[1], 'attemptToken', 'phase')

if run[1] ~= ARGV[1] then return 'foreign_attempt' end
if run[2] == 'starting' then redis.call('HSET', KEYS[1], 'phase', 'running', 'runningAtMs', ARGV[2]) end
return 'set'
