--[[
  Takes entries off a lane's head, exactly through one id. A lane that is empty then is disarmed and leaves the set
  of lanes in the same step: an append that comes next arms it again, so none is forgotten.

  KEYS  1 lane state (hash)   2 lane (stream)   3 lanes (sorted set)
  ARGV  1 id of the last entry to go   2 the smallest id after it   3 run id
  Returns  entries left
]]
-- What frees memory comes first: then the rest is allowed too when Redis is full (P8).
local last = redis.call('XREVRANGE', KEYS[2], ARGV[1], '-', 'COUNT', 1)[1]
if last then
  redis.call('XTRIM', KEYS[2], 'MINID', '=', ARGV[2])
  -- The state may be gone before its lane is: what has ended must not come back.
  if redis.call('EXISTS', KEYS[1]) == 1 then redis.call('HSET', KEYS[1], 'trimmedBytes', last[2][4]) end
  redis.call('HDEL', KEYS[1], 'parked', 'parkedAtMs')
end
local left = redis.call('XLEN', KEYS[2])
if left == 0 then
  redis.call('DEL', KEYS[2])
  redis.call('HDEL', KEYS[1], 'armed')
  redis.call('ZREM', KEYS[3], ARGV[3])
elseif last then
  local time = redis.call('TIME')
  redis.call('ZADD', KEYS[3], 'XX', string.format('%.0f', tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)), ARGV[3])
end
return left
