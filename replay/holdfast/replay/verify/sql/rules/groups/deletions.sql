-- The place of each group's last deletion, after which another life of it may have begun.
--
-- {rows}: records, as columns.
select grp as gone, max(idx * 16777216 + (cast(ordinal as bigint) + 1048576) * 8) as ended
from {rows}
where type = 'GroupDeleted'
group by grp
