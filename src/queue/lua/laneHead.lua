--[[
  Reads a lane's first entries, bounded by their number and by their bytes, in one round trip. The first entry is
  always among them, however large it is.

  KEYS  1 lane (stream)
  ARGV  1 most entries   2 most bytes
  Returns  a list of { id, 'frame' or 'finalize', text }
]]
local READ_AT_ONCE = 8 -- keeps what is read in vain small when entries are large
local head = {}
local bytes = 0
local from = '-'
while #head < tonumber(ARGV[1]) do
  local entries = redis.call('XRANGE', KEYS[1], from, '+', 'COUNT', math.min(READ_AT_ONCE, ARGV[1] - #head))
  if #entries == 0 then break end
  for _, entry in ipairs(entries) do
    local kind, text = entry[2][1], entry[2][2]
    bytes = bytes + #text
    if #head > 0 and bytes > tonumber(ARGV[2]) then return head end
    head[#head + 1] = { entry[1], kind, text }
    from = '(' .. entry[1]
  end
end
return head
