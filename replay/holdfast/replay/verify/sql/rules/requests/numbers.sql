-- All requests with their numbers, in the order in which they were served; those of a checkpoint have
-- theirs.
--
-- Reads requests: the requests that were served, and those of a checkpoint; bounds: one row
-- (requests/bounds.sql).
select at, of, principal, log_time_ms, request, kept,
  case
    when kept then number
    else row_number() over (partition by kept order by at) - 1 + (select next_number from {bounds})
  end as number
from {requests}
