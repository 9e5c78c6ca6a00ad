-- The records of each group's present life: those after its last deletion.
--
-- {rows}: records, as columns; {deleted}: what groups/deletions.sql finds in them. Each is `at` a place, one
-- number that grows with the log (statements.py). Rows that a conversion is told by (conversion/rows.sql)
-- have `carried`, and the `token` that a member brings from before.
with placed as (
  select * except (payload, chain),
    idx * 16777216 + (cast(ordinal as bigint) + 1048576) * 8 as at,
    false as carried,
    cast(null as bigint) as token
  from {rows}
  where grp <> ''
)
select /*+ broadcast(gone) */ placed.*
from placed left join {deleted} as gone on placed.grp = gone.gone
where gone.ended is null or at > gone.ended
