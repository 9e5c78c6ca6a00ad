-- What each record of a group of the heartbeat protocol says of each member, and in which seat that
-- member is. A seat is what a swap passes on: that of the instance of a static member, that of the id of
-- a dynamic one. A member id is in the seat that it took last: by joining, or by a swap.
-- living: the records of these groups.
with each as (
  select grp, at, type, old_member_id, instance_id, joined, command, carried, token, epoch, topics, regex,
    classic, waiting, granted, asked_back, freed, one.member_id as member_id, one.target as target
  from {living}
  lateral view explode(
    case
      when type in ('MembersLeft', 'MembersRemoved')
        then transform(members, id -> struct(id as member_id, null as target))
      when type = 'TargetStored' then transform(targets, aim -> struct(
        aim.member_id as member_id,
        struct(aim.partitions as partitions, aim.version as version, aim.metadata as metadata) as target))
      else array(struct(member_id, null as target))
    end) v as one
  where type in ('MembersLeft', 'MembersRemoved', 'TargetStored', 'MemberSubscribed', 'MemberExpired')
    or type in ('StaticMemberReplaced', 'InstanceReleased', 'MemberAdvanced')
), seated as (
  select *,
    coalesce(joined, false) or type = 'StaticMemberReplaced' as came,
    last_value(case when joined or type = 'StaticMemberReplaced' then struct(instance_id) end) ignore nulls
      over (partition by grp, member_id order by at) as taken
  from each
)
select grp, at, type, member_id, old_member_id, instance_id, joined, came, command, carried, token, epoch,
  topics, regex, classic, waiting, granted, asked_back, freed, target,
  coalesce(concat('i:', taken.instance_id), concat('m:', member_id)) as seat
from seated
