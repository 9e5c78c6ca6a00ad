-- The members of each conversion, and what is known of each from before, since a conversion does not tell
-- it: the instance, and whether the process stopped.
-- phases: the records of groups that changed their type (conversion/phases.sql).
with named as (
  select grp, phase, present, at, type, group_type, generation, instance_id,
    one.member_id as member_id, one.topics as topics, one.partitions as partitions,
    coalesce(joined, false) or type in ('MemberJoined', 'StaticMemberReplaced') as came
  from {phases}
  lateral view explode(
    case when type = 'GroupConverted' then converted
      else array(struct(member_id, null as topics, null as partitions)) end) v as one
  where joined or type in ('MemberJoined', 'StaticMemberReplaced')
    or type in ('InstanceReleased', 'MemberAdvanced', 'GroupConverted')
), known as (
  select *,
    last_value(case when came then struct(instance_id) end) ignore nulls
      over (partition by grp, member_id order by at) as taken,
    last_value(case when type <> 'GroupConverted' then type end) ignore nulls
      over (partition by grp, member_id order by at) as last_said
  from named
)
-- A process has stopped if nothing was said of its id since it released the instance.
select grp, phase, present, at, group_type, generation, member_id, taken.instance_id as instance_id,
  coalesce(concat('i:', taken.instance_id), concat('m:', member_id)) as seat,
  coalesce(last_said = 'InstanceReleased', false) as released,
  topics, partitions, cast(null as bigint) as token
from known
where type = 'GroupConverted'
