--[[
  Extends the queue's lock of an attempt's job, exactly as the queue's own extendLock does, but only while the
  attempt token is the run's too: one answer for both kinds of ownership, and the word of a lease along with it.

  A lost lease no longer matters once the lane has its finalize: the platform may have closed the assignment itself.

  KEYS  1 run record (hash)   2 lane state (hash)   3 credential (string)
        4 lock of the queue's job (string)   5 the queue's stalled set
  ARGV  1 attempt token   2 lock token   3 lock in ms   4 job id   5 time to live of record, lane state and
        credential in ms
  Returns  renewed, 1 when a stop is wanted
           superseded | foreign_attempt | lease_lost | lock_lost
]]
local run = redis.call('HMGET', KEYS[1], 'attemptToken', 'phase', 'leaseLostAtMs', 'cancelRequestedAtMs')

if not run[1] then return { 'superseded' } end
if run[1] ~= ARGV[1] then return { 'foreign_attempt' } end
if run[3] and run[2] ~= 'done' and redis.call('HGET', KEYS[2], 'finalized') ~= '1' then return { 'lease_lost' } end
if redis.call('GET', KEYS[4]) ~= ARGV[2] then return { 'lock_lost' } end

redis.call('SET', KEYS[4], ARGV[2], 'PX', ARGV[3])
redis.call('SREM', KEYS[5], ARGV[4])
if run[2] ~= 'done' and not run[3] then
  redis.call('PEXPIRE', KEYS[1], ARGV[5])
  redis.call('PEXPIRE', KEYS[2], ARGV[5])
  redis.call('PEXPIRE', KEYS[3], ARGV[5])
end
return { 'renewed', run[4] and 1 or 0 }
