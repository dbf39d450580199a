--[[
  Appends rows to a lane for the attempt that owns it. Rows at or below the highest cursor are a repeat and skipped.
  The first entry of an idle lane arms it: exactly one appender is told to make a flush job. So is one that repeats
  itself, because with its answer that word may have been lost.

  Each entry carries the sum of all bytes ever appended, so that a lane's size is a subtraction and never a scan.

  KEYS  1 lane state (hash)   2 lane (stream)   3 lanes (sorted set)   4 run record (hash)
  ARGV  1 attempt token   2 run id   3 time to live of the lane in ms   4 of what a lost lease leaves, in ms
        5.. cursor, frame, ...
  Returns  appended, entries in the lane, bytes in the lane, 1 when a flush is needed
           foreign_attempt | finalized
]]
local state = redis.call('HMGET', KEYS[1], 'token', 'lastCursor', 'finalized', 'armed', 'appendedBytes', 'trimmedBytes')
local run = redis.call('HMGET', KEYS[4], 'phase', 'attemptToken', 'leaseLostAtMs')

if state[1] ~= ARGV[1] then
  if run[1] == 'done' and run[2] == ARGV[1] then return { 'finalized' } end
  return { 'foreign_attempt' }
end
if state[3] == '1' then return { 'finalized' } end

local last = tonumber(state[2] or '0')
local lastText = state[2]
local bytes = tonumber(state[5] or '0')
local added = 0
for i = 5, #ARGV, 2 do
  local cursor = tonumber(ARGV[i])
  if cursor > last then
    bytes = bytes + #ARGV[i + 1]
    redis.call('XADD', KEYS[2], ARGV[i] .. '-0', 'frame', ARGV[i + 1], 'sum', string.format('%.0f', bytes))
    last = cursor
    lastText = ARGV[i]
    added = added + 1
  end
end
if added > 0 then
  redis.call('HSET', KEYS[1], 'lastCursor', lastText, 'appendedBytes', string.format('%.0f', bytes))
  redis.call('PEXPIRE', KEYS[2], run[3] and ARGV[4] or ARGV[3])
  if run[3] then redis.call('PEXPIRE', KEYS[1], ARGV[4]) end
end

local entries = redis.call('XLEN', KEYS[2])
local needsFlush = 0
if entries > 0 then
  if state[4] ~= '1' then
    local time = redis.call('TIME')
    redis.call('HSET', KEYS[1], 'armed', '1')
    redis.call('ZADD', KEYS[3], string.format('%.0f', tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)), ARGV[2])
    needsFlush = 1
  elseif added == 0 and #ARGV > 4 then
    needsFlush = 1
  end
end
return { 'appended', entries, bytes - tonumber(state[6] or '0'), needsFlush }
