--[[
  Ends a claim: the record becomes a tombstone that ends by itself, credential and lane go. A word about a claim that
  is no longer the run's changes nothing.

  The attempt token stays in the tombstone, so that the attempt's own last words are still recognised.

  KEYS  1 run record (hash)   2 credential (string)   3 lane (stream)   4 lane state (hash)   5 lanes (sorted set)
  ARGV  1 lease id   2 status   3 answer   4 time to live of the tombstone in ms   5 run id
  Returns  finished | superseded
]]
local run = redis.call('HMGET', KEYS[1], 'leaseId', 'phase')

if run[1] ~= ARGV[1] then return 'superseded' end
if run[2] == 'done' then return 'finished' end
local time = redis.call('TIME')
-- What frees memory comes first: then the rest is allowed too when Redis is full (P8).
redis.call('DEL', KEYS[2], KEYS[3], KEYS[4])
redis.call('ZREM', KEYS[5], ARGV[5])
redis.call('HSET', KEYS[1], 'phase', 'done', 'status', ARGV[2], 'answer', ARGV[3],
  'doneAtMs', string.format('%.0f', tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)))
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return 'finished'
