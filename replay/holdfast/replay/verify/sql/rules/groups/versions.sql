-- The last entry of each group, and the number of its records.
--
-- Reads counted: all rows of each group's life, those of the dedupe table as well. Rows of a log have a
-- rule; of those that stand for a checkpoint, HeadKept tells the version that the group had.
with latest as (
  select grp,
    max(case when rule is not null then idx when type = 'HeadKept' then beat end) as version,
    max_by(grp_seq, at) as seq,
    bool_or(type <> 'RequestRecorded') as lives
  from {counted}
  group by grp
)
select grp, 'version' as kind, '' as key, concat_ws(':', version, seq) as value
from latest
where lives
