--[[
  Sets a lane aside that can't be shipped now: it leaves the set of lanes and is disarmed, so that no sweep spins on
  it; its entries stay. The next append, or a new claim of the run, brings it back.

  KEYS  1 lane state (hash)   2 lanes (sorted set)
  ARGV  1 run id   2 why   3 when, in ms
  Returns  1
]]
redis.call('HDEL', KEYS[1], 'armed')
redis.call('HSET', KEYS[1], 'parked', ARGV[2], 'parkedAtMs', ARGV[3])
redis.call('ZREM', KEYS[2], ARGV[1])
return 1
