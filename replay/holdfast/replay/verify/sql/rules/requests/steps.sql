-- How many requests had gone before and after each came (S15).
--
-- Each request that is served is numbered, and pushes out at most eight of the oldest: those that are older
-- than twice the window, and those beyond the number that may be kept. How many are gone after the k-th is,
-- for every j up to k, at most what was due at j, and eight for each one since; the least of these is the
-- number, as long as the settings are the same.
--
-- Reads numbered: all requests (requests/numbers.sql); bounds: one row (requests/bounds.sql).
with times as (
  -- Those of a checkpoint have come before; they grow old with the others. Each is told of twice: as it
  -- comes, and as it is too old.
  select at, number, kept, log_time_ms, log_time_ms as time_ms, cast(null as int) as old
  from {numbered}
  union all
  select null, null, null, null, log_time_ms + 2 * b.window_ms + 1, 1
  from {numbered}
  cross join {bounds} b
), aged as (
  select at, number, kept, log_time_ms, count(old) over (order by time_ms) as aged
  from times
), due as (
  select at, number, log_time_ms, b.oldest,
    greatest(aged + b.oldest, number + 1 - b.most, b.oldest) as due,
    number + 1 > b.most as much,
    (number + 1 - b.next_number) * 8 + b.oldest as all_at_once
  from aged
  cross join {bounds} b
  where not kept
), gone as (
  select at, number, log_time_ms, oldest, much,
    least(min(due - number * 8) over (order by at) + number * 8, all_at_once) as gone
  from due
)
select at, number, log_time_ms, much, gone,
  coalesce(lag(gone) over (order by at), oldest) as before
from gone
