-- The dedupe table, one row a request that is kept, and its counters.
--
-- Reads numbered: all requests (requests/numbers.sql); totals: one row, the oldest number that is kept, the one
-- that follows, and the time of what is not known.
select '' as grp, 'request' as kind,
  concat_ws('|', principal, of, request.request_id) as key,
  concat_ws(':', lower(hex(request.digest)), lower(hex(request.answer)), log_time_ms, number,
    concat_ws('.', at div 16777216, (at & 16777215) div 8 - 1048576)) as value
from {numbered}
where number >= (select oldest from {totals})
union all
select '', 'cluster', key, cast(value as string)
from {totals}
lateral view inline(array(
  struct('requests next' as key, next_number as value),
  struct('requests floor' as key, floor_ms as value)
)) v as key, value
where value <> 0
