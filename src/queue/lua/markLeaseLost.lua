--[[
  Notes that the platform no longer counts a claim as ours. What is left of the claim gets an end: nobody may ever
  come back for it, and it holds sealed credentials.

  KEYS  1 run record (hash)   2 credential (string)   3 lane (stream)   4 lane state (hash)
  ARGV  1 lease id   2 time to live of what is left in ms
  Returns  marked | superseded | done
]]
local run = redis.call('HMGET', KEYS[1], 'leaseId', 'phase')

if run[1] ~= ARGV[1] then return 'superseded' end
if run[2] == 'done' then return 'done' end
local time = redis.call('TIME')
local now = string.format('%.0f', tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000))
if redis.call('HSETNX', KEYS[1], 'leaseLostAtMs', now) == 1 then
  for i = 1, 4 do redis.call('PEXPIRE', KEYS[i], ARGV[2]) end
end
return 'marked'
