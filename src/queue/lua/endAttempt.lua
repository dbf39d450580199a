--[[
  Notes why an attempt ended. Without a finalize in the lane its run waits again.

  KEYS  1 run record (hash)   2 lane state (hash)
  ARGV  1 attempt token   2 end reason   3 evidence   4 1 when the end counts
  Returns  recorded, ends of this claim that count
           foreign_attempt
]]
local run = redis.call('HMGET', KEYS[1], 'attemptToken', 'phase', 'attempt', 'countedEnds')

if run[1] ~= ARGV[1] then return { 'foreign_attempt' } end
local field = 'end.' .. run[3]
if redis.call('HEXISTS', KEYS[1], field) == 1 then return { 'recorded', tonumber(run[4] or '0') } end

local time = redis.call('TIME')
local now = string.format('%.0f', tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000))
redis.call('HSET', KEYS[1], field, now .. ' ' .. ARGV[2] .. ' ' .. ARGV[3])
if run[2] ~= 'done' and redis.call('HGET', KEYS[2], 'finalized') ~= '1' then
  redis.call('HSET', KEYS[1], 'phase', 'queued')
end
return { 'recorded', redis.call('HINCRBY', KEYS[1], 'countedEnds', ARGV[4]) }
