-- The time of the youngest request that had to go for want of room, or was made ahead of it: one row.
--
-- Reads numbered: all requests (requests/numbers.sql); steps: what went as each came (requests/steps.sql); bounds: one
-- row (requests/bounds.sql).
with going as (
  select log_time_ms as now_ms, number
  from (select log_time_ms, before, gone from {steps} where gone > before) steps
  lateral view explode(sequence(before, gone - 1)) v as number
), lost as (
  -- The first 48 bits of a UUID of version 7 are the time at which it was made; it counts up to a window
  -- ahead.
  select n.log_time_ms, n.log_time_ms + b.window_ms as latest_ms,
    case when n.request.request_id rlike concat(
        '^[0-9a-fA-F]{{8}}-[0-9a-fA-F]{{4}}-7[0-9a-fA-F]{{3}}-',
        '[89abAB][0-9a-fA-F]{{3}}-[0-9a-fA-F]{{12}}$')
      then cast(conv(substring(replace(n.request.request_id, '-', ''), 1, 12), 16, 10) as bigint)
      else 0
    end as made_ms
  from {numbered} n
  join going on going.number = n.number
  cross join {bounds} b
  where n.log_time_ms >= going.now_ms - 2 * b.window_ms
)
select max(greatest(log_time_ms, least(made_ms, latest_ms))) as floor_ms
from lost
