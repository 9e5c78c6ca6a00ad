-- What bounds the dedupe table: one row. Null is a setting that nobody has set.
--
-- `changed`: one of the settings was changed after the first request came. RequestsCounted tells, for a
-- checkpoint, the next number, and the time of what is not known; the requests that it has kept bear the
-- numbers before that.
--
-- Reads requests: the requests that were served, and those of a checkpoint; own: the cluster's own records.
with told as (
  select 'request' as what, at, kept, cast(null as string) as value, cast(null as bigint) as next_number,
    cast(null as bigint) as floor_ms
  from {requests}
  union all
  select it.key, at, null, it.value, null, null
  from {own}
  lateral view explode(settings) v as it
  where scope = '' and it.key in ('dedupe.window_ms', 'dedupe.requests_max')
  union all
  select 'counted', at, null, null, number, place.log_time_ms
  from {own}
  where type = 'RequestsCounted'
)
select
  coalesce(
    max(case when what not in ('request', 'counted') then at end)
      > min(case when what = 'request' then at end),
    false) as changed,
  cast(max_by(value, case when what = 'dedupe.window_ms' then at end) as bigint) as window_ms,
  cast(max_by(value, case when what = 'dedupe.requests_max' then at end) as bigint) as most,
  coalesce(max(next_number) - count(case when kept then 1 end), 0) as oldest,
  coalesce(max(next_number), 0) as next_number,
  coalesce(max(floor_ms), 0) as floor_ms
from told
