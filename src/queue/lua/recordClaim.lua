--[[
  Records a claim: seals are made by the caller, this makes the record and the credential appear together.
  A newer claim of a run supersedes an older one: the attempt token goes, so every write of an older attempt is
  refused from here on. A lane with entries that have not shipped yet stays.

  KEYS  1 run record (hash)   2 credential (string)   3 lane (stream)   4 lane state (hash)
  ARGV  1 lease id
        2 expiry of the lease in ms, by the platform's clock: orders the claims of one run
        3 sealed credential
        4 time to live of record, credential and what is left of an older claim's lane, in ms
        5.. field, value, ... of the claim
  Returns  recorded   this is now the run's claim
           repeated   it was already; the record stays as it is
           done       it was already and its run is finished; nothing is written
           stale      a newer claim of the run is recorded; nothing is written
]]
local known = redis.call('HMGET', KEYS[1], 'leaseId', 'phase', 'leaseExpiresAtMs', 'leaseLostAtMs')

if known[1] == ARGV[1] then
  if known[2] == 'done' then return 'done' end
  if not known[4] then
    redis.call('SET', KEYS[2], ARGV[3], 'PX', ARGV[4])
    redis.call('PEXPIRE', KEYS[1], ARGV[4])
  end
  return 'repeated'
end
local holds = known[1] and known[2] ~= 'done' and not known[4]
if holds and tonumber(known[3]) > tonumber(ARGV[2]) then return 'stale' end

local time = redis.call('TIME')
local now = string.format('%.0f', tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000))

redis.call('HDEL', KEYS[1], 'attemptToken', 'executorId', 'claimStarts', 'countedEnds', 'leaseLostAtMs', 'cancelRequestedAtMs',
  'status', 'answer', 'startedAtMs', 'runningAtMs', 'finishingAtMs', 'doneAtMs')
redis.call('HINCRBY', KEYS[1], 'claims', 1)
redis.call('HSET', KEYS[1], 'leaseId', ARGV[1], 'leaseExpiresAtMs', ARGV[2], 'phase', 'queued', 'queuedAtMs', now)
for i = 5, #ARGV, 2 do
  redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1])
end
redis.call('PEXPIRE', KEYS[1], ARGV[4])
redis.call('SET', KEYS[2], ARGV[3], 'PX', ARGV[4])

-- What was parked for want of a good token has one now; the next append or the attempt's start sees to its flush.
redis.call('HDEL', KEYS[4], 'token', 'armed', 'parked', 'parkedAtMs')
redis.call('PEXPIRE', KEYS[3], ARGV[4])
redis.call('PEXPIRE', KEYS[4], ARGV[4])
return 'recorded'
