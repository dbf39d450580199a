--[[
  Appends the finalize, the last entry that a lane ever gets, and moves the run to `finishing`. The same attempt's
  second try is told that it has succeeded before, also when the run is done by now.

  KEYS  1 lane state (hash)   2 lane (stream)   3 lanes (sorted set)   4 run record (hash)   5 credential (string)
  ARGV  1 attempt token   2 run id   3 sealed finalize
        4 time to live of record, lane, lane state and credential in ms   5 time to live of what a lost lease leaves, in ms
  Returns  appended or repeated, 1 when a flush is needed
           foreign_attempt
]]
local state = redis.call('HMGET', KEYS[1], 'token', 'lastCursor', 'finalized', 'armed', 'appendedBytes', 'finalizeToken')
local run = redis.call('HMGET', KEYS[4], 'phase', 'attemptToken', 'leaseLostAtMs')

if state[3] == '1' then
  if state[6] ~= ARGV[1] then return { 'foreign_attempt' } end
  return { 'repeated', redis.call('XLEN', KEYS[2]) > 0 and 1 or 0 }
end
if state[1] ~= ARGV[1] then
  if run[1] == 'done' and run[2] == ARGV[1] then return { 'repeated', 0 } end
  return { 'foreign_attempt' }
end

local time = redis.call('TIME')
local now = string.format('%.0f', tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000))
local bytes = string.format('%.0f', tonumber(state[5] or '0') + #ARGV[3])
redis.call('XADD', KEYS[2], (state[2] or '0') .. '-1', 'finalize', ARGV[3], 'sum', bytes)
redis.call('HSET', KEYS[1], 'finalized', '1', 'finalizeToken', ARGV[1], 'appendedBytes', bytes, 'armed', '1')
if run[1] ~= 'finishing' then redis.call('HSET', KEYS[4], 'phase', 'finishing', 'finishingAtMs', now) end
if run[3] then
  redis.call('PEXPIRE', KEYS[1], ARGV[5])
  redis.call('PEXPIRE', KEYS[2], ARGV[5])
else
  redis.call('PEXPIRE', KEYS[1], ARGV[4])
  redis.call('PEXPIRE', KEYS[2], ARGV[4])
  redis.call('PEXPIRE', KEYS[4], ARGV[4])
  redis.call('PEXPIRE', KEYS[5], ARGV[4])
end
if state[4] == '1' then return { 'appended', 0 } end
redis.call('ZADD', KEYS[3], now, ARGV[2])
return { 'appended', 1 }
