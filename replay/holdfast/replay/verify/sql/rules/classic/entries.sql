-- The state of classic groups without their offsets, one row a key.
--
-- {living}: the records of these groups; {grants}: what classic/grants.sql finds in them.
with generations as (
  -- The generation of the last closed join phase; 0 before the first.
  select grp, coalesce(
      max_by(generation, case when type in ('GenerationStarted', 'GroupEmptied') then at end), 0
    ) as number
  from {living}
  group by grp
)
select grp, kind, key, value
from {grants}
lateral view inline(array(
  struct('member' as kind, member_id as key, coalesce(instance_id, '') as value),
  struct('instance' as kind, instance_id as key, member_id as value),
  struct('grant' as kind, member_id as key, concat_ws(':', granted, held) as value),
  struct('abandoned' as kind, member_id as key, case when abandoned <> '' then abandoned end as value)
)) each as kind, key, value
where key is not null and value is not null
union all
select grp, 'generation', '', cast(number as string) from generations
