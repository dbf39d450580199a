--[[
  Names lanes with work that nothing has happened to for a while, oldest first, and counts naming them as something:
  the next sweep, also another process's, looks at others first.

  KEYS  1 lanes (sorted set: run id by time of the last event)
  ARGV  1 how long nothing has happened, in ms   2 most names
  Returns  run ids
]]
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local runs = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now - ARGV[1]), 'LIMIT', 0, ARGV[2])
for _, run in ipairs(runs) do redis.call('ZADD', KEYS[1], 'XX', string.format('%.0f', now), run) end
return runs
