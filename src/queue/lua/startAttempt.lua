--[[
  Starts an attempt: writes its token into the run record and the lane state at once, so that from here on every
  write of an earlier attempt is refused. The same token again (an answer was lost) gets the same answer and counts
  nothing.

  KEYS  1 run record (hash)   2 lane state (hash)   3 credential (string)   4 lock of the queue's job (string)
  ARGV  1 lease id   2 executor id   3 attempt token
        4 time to live of record, lane state and credential in ms
        5 lock token; empty: the lock is not looked at
        6 how many starts and ends the record keeps
  Returns  started, number of the attempt, highest cursor of the lane, starts of this claim before this one
           unknown | superseded | done | finalizing | lease_lost
]]
local run = redis.call('HMGET', KEYS[1], 'leaseId', 'phase', 'attemptToken', 'leaseLostAtMs', 'attempt', 'claimStarts')

if not run[1] then return { 'unknown' } end
if run[1] ~= ARGV[1] then return { 'superseded' } end
if ARGV[5] ~= '' and redis.call('GET', KEYS[4]) ~= ARGV[5] then return { 'superseded' } end
if run[2] == 'done' then return { 'done' } end
local lane = redis.call('HMGET', KEYS[2], 'lastCursor', 'finalized')
if lane[2] == '1' then return { 'finalizing' } end
if run[4] then return { 'lease_lost' } end

local attempt = run[5]
local claimStarts = run[6]
if run[3] ~= ARGV[3] then
  local time = redis.call('TIME')
  local now = string.format('%.0f', tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000))
  attempt = redis.call('HINCRBY', KEYS[1], 'attempt', 1)
  claimStarts = redis.call('HINCRBY', KEYS[1], 'claimStarts', 1)
  redis.call('HSET', KEYS[1], 'attemptToken', ARGV[3], 'executorId', ARGV[2], 'phase', 'starting', 'startedAtMs', now,
    'start.' .. attempt, now .. ' ' .. ARGV[2])
  redis.call('HDEL', KEYS[1], 'runningAtMs', 'finishingAtMs', 'start.' .. (attempt - ARGV[6]), 'end.' .. (attempt - ARGV[6]))
  redis.call('HSET', KEYS[2], 'token', ARGV[3])
end
redis.call('PEXPIRE', KEYS[1], ARGV[4])
redis.call('PEXPIRE', KEYS[2], ARGV[4])
redis.call('PEXPIRE', KEYS[3], ARGV[4])
return { 'started', tonumber(attempt), lane[1] or '0', tonumber(claimStarts) - 1 }
