--[[
  Sets a lane aside that can't be shipped now: it leaves the set of lanes and is disarmed, so that no sweep spins on
  it; its entries stay. The next append, or a new claim of the run, brings it back. When that claim is there already,
  nothing is done: its appends may have found the lane armed, and nobody would flush them.

  KEYS  1 lane state (hash)   2 lanes (sorted set)   3 run record (hash)   4 credential (string)
  ARGV  1 run id   2 lease id of the claim that may not ship; empty: there was no credential   3 why   4 when, in ms
  Returns  parked | superseded
]]
if ARGV[2] == '' then
  if redis.call('EXISTS', KEYS[4]) == 1 then return 'superseded' end
else
  local lease = redis.call('HGET', KEYS[3], 'leaseId')
  if lease and lease ~= ARGV[2] then return 'superseded' end
end
if redis.call('EXISTS', KEYS[1]) == 1 then
  redis.call('HDEL', KEYS[1], 'armed')
  redis.call('HSET', KEYS[1], 'parked', ARGV[3], 'parkedAtMs', ARGV[4])
end
redis.call('ZREM', KEYS[2], ARGV[1])
return 'parked'
