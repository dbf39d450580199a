--[[
  Takes a lane that has ended by itself (what a lost lease left) out of the set of lanes.

  KEYS  1 lane (stream)   2 lane state (hash)   3 lanes (sorted set)
  ARGV  1 run id
  Returns  1 when it was gone, 0 when it has entries
]]
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
redis.call('HDEL', KEYS[2], 'armed')
redis.call('ZREM', KEYS[3], ARGV[1])
return 1
