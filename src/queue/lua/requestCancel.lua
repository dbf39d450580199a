--[[
  Notes that a stop is wanted; the attempt reads it with its next renewal.

  KEYS  1 run record (hash)
  ARGV  1 lease id
  Returns  requested | superseded | done
]]
local run = redis.call('HMGET', KEYS[1], 'leaseId', 'phase')

if run[1] ~= ARGV[1] then return 'superseded' end
if run[2] == 'done' then return 'done' end
local time = redis.call('TIME')
redis.call('HSETNX', KEYS[1], 'cancelRequestedAtMs',
  string.format('%.0f', tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)))
return 'requested'
