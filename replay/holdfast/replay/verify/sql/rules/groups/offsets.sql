-- The last offset of each partition, and what was kept beside it, unless it was deleted.
--
-- {living}: the records of groups. Most records of a log are commits, so all that is aggregated here
-- has a fixed size: Spark then keeps it by hash and sorts nothing. So text that is kept beside an
-- offset is told by its CRC-32. Up to seven partitions of one record have places of their own behind
-- the record's; of two that are equal in a longer one, Spark takes the latter.
with commits as (
  select grp, at, log_time_ms, offsets, beside from {living} where offsets is not null
), flat as (
  select grp, it.topic, it.partition, it.offset, log_time_ms,
    at + least(nth, 7) as at,
    get(beside, nth).leader_epoch as epoch,
    crc32(encode(get(beside, nth).metadata, 'UTF-8')) as text
  from commits
  lateral view posexplode(offsets) each as nth, it
), last as (
  select grp, topic, partition,
    max_by(offset, at) as offset,
    max_by(epoch, at) as epoch,
    max_by(log_time_ms, at) as log_time_ms,
    max_by(text, at) as text
  from flat
  group by grp, topic, partition
)
select grp, kind, concat_ws('/', topic, partition) as key, value
from last
lateral view inline(array(
  struct('offset' as kind, cast(offset as string) as value),
  struct('commit' as kind, concat_ws(':', epoch, log_time_ms, text) as value)
)) each as kind, value
where offset is not null
