-- A token bucket in exact integers, as in fake_telegram::bucket: a clock ticks `ticks` times a microsecond, and a token
-- costs a whole number of ticks. A number of ticks would leave 2^53 after days, so it is a pair: whole microseconds, and
-- ticks of the next one (0 <= r < ticks). `cost` is a token's, `spare` that of all but one. The state is the tick at
-- which the bucket will be full again; 0, 0 is full.

-- How long until a token is there.
local function bucket_wait(bucket, q, r)
  q, r = q - bucket.spare[1], r - bucket.spare[2]
  if r < 0 then q, r = q - 1, r + bucket.ticks end
  return math.max(0, q - now + (r > 0 and 1 or 0))
end

-- Takes a token, whether it is there or not.
local function bucket_take(bucket, q, r)
  if q < now then q, r = now, 0 end
  q, r = q + bucket.cost[1], r + bucket.cost[2]
  if r >= bucket.ticks then q, r = q + 1, r - bucket.ticks end
  return q, r
end

local function bucket_put_back(bucket, q, r)
  q, r = q - bucket.cost[1], r - bucket.cost[2]
  if r < 0 then q, r = q - 1, r + bucket.ticks end
  if q < 0 then return 0, 0 end
  return q, r
end
