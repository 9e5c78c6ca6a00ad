-- The requests that were served, and those that a checkpoint tells of (`kept`), each `at` its place.
--
-- Reads rows: all records.
select idx * 16777216 + (cast(ordinal as bigint) + 1048576) * 8 as at, coalesce(scope, grp) as of, principal,
  log_time_ms, request, number, type = 'RequestKept' as kept
from {rows}
where type in ('RequestRecorded', 'RequestKept')
