--[[
  Moves a run on in its life, for the attempt that owns it. A phase never goes back by this: a resent command may
  arrive after a later one.

  KEYS  1 run record (hash)
  ARGV  1 attempt token   2 phase   3 when, in ms
  Returns  set | foreign_attempt
]]
local rank = { queued = 0, starting = 1, running = 2, finishing = 3, done = 4 }
local run = redis.call('HMGET', KEYS[1], 'attemptToken', 'phase')

if run[1] ~= ARGV[1] then return 'foreign_attempt' end
if rank[ARGV[2]] > rank[run[2]] then
  redis.call('HSET', KEYS[1], 'phase', ARGV[2], ARGV[2] .. 'AtMs', ARGV[3])
end
return 'set'
