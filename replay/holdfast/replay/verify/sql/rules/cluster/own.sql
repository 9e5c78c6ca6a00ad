-- The cluster's own records, which belong to no group, each `at` its place.
--
-- Reads rows: all records.
select idx * 16777216 + (cast(ordinal as bigint) + 1048576) * 8 as at, idx, grp_seq, log_time_ms, type,
  name, number, place, scope, settings, sizes, acls, revocations
from {rows}
where grp = ''
