-- The records of phases, with rows that tell what each phase began with, as if that had happened in it.
-- phases: the records of groups that changed their type (conversion/phases.sql); members: those of each
-- conversion (conversion/members.sql), with the token that each brings, if that is known.
with conversions as (
  select grp, phase, present, at, group_type, generation, converted
  from {phases}
  where type = 'GroupConverted'
), written as (
  -- The bytes of a `ConsumerProtocolAssignment` (group.proto), in hexadecimal, as protobuf writes them: each
  -- classic member gets one. A number, as the length of a field, is written in bytes of seven bits; all but
  -- the last have the bit 128, too. A field that is empty is left out. First, what is in each topic's fields.
  select grp, phase, present, at, group_type, generation, converted,
    transform(converted, member -> struct(member.member_id as member_id,
      transform(member.partitions, part -> array(
        struct('0A' as tag, hex(encode(part.topic, 'UTF-8')) as content),
        struct('12' as tag, array_join(transform(part.partitions, number -> array_join(transform(
          filter(array(1, 128, 16384, 2097152, 268435456), p -> p = 1 or number >= p),
          p -> lpad(hex(number div p % 128 + case when number div p >= 128 then 128 else 0 end), 2, '0')),
          '')), '') as content))) as topics)) as members
  from conversions
), topical as (
  -- Each topic: its fields, with their lengths.
  select grp, phase, present, at, group_type, generation, converted,
    transform(members, member -> struct(member.member_id as member_id,
      transform(member.topics, fields -> array_join(transform(
        filter(fields, field -> field.content <> ''),
        field -> concat(field.tag, array_join(transform(
          filter(array(1, 128, 16384, 2097152, 268435456), p -> p = 1 or length(field.content) div 2 >= p),
          p -> lpad(hex(length(field.content) div 2 div p % 128
            + case when length(field.content) div 2 div p >= 128 then 128 else 0 end), 2, '0')),
          ''), field.content)), '')) as topics)) as members
  from written
), assigned as (
  -- Each assignment: its topics, with their lengths.
  select grp, phase, present, at, group_type, generation, converted,
    transform(members, member -> struct(member.member_id as member_id,
      unhex(array_join(transform(
        filter(member.topics, topic -> topic <> ''),
        topic -> concat('0A', array_join(transform(
          filter(array(1, 128, 16384, 2097152, 268435456), p -> p = 1 or length(topic) div 2 >= p),
          p -> lpad(hex(length(topic) div 2 div p % 128
            + case when length(topic) div 2 div p >= 128 then 128 else 0 end), 2, '0')),
          ''), topic)), '')) as assignment)) as grants
  from topical
), begun as (
  -- The order of the rows that a member is told by: that it came, and got what it owns; and stopped, if it
  -- had stopped.
  select *, cast(array() as array<struct<topic: string, partitions: array<int>>>) as nothing
  from {members}
  lateral view explode(array(1, 2, 3)) v as nth
)
select grp, phase, present, at, type, carried, token, group_type, generation, grants, member_id,
  old_member_id, instance_id, members, removed, joined, classic, command, topics, regex, epoch,
  targets, granted, asked_back, freed, waiting, assignor, late, installed_by
from {phases}
union all
-- The generation, or the epochs, and what everybody has, or is to have.
select grp, phase, present, at + 2 + nth, told_as, true, null, null, generation, grants, null,
  null, null, null, null, null, null, null, null, null, generation,
  transform(converted, member -> struct(
    member.member_id as member_id, member.partitions as partitions, 0 as version, X'' as metadata)),
  null, null, null, null, null, null, null
from assigned
lateral view posexplode(
  case when group_type = 'consumer' then array('EpochRaised', 'TargetStored')
    else array('GenerationStarted', 'AssignmentStored') end) v as nth, told_as
union all
-- A member that comes from the classic protocol still speaks it; its epoch before is its epoch.
select grp, phase, present, at + nth, told_as, true, token, null, null, null, member_id,
  null, instance_id, null, null, nth = 1, true, null, topics, '', generation,
  null, case when nth = 2 then partitions else nothing end, nothing, nothing, false, null, null, null
from (
  select *,
    case when nth = 1 then case when group_type = 'consumer' then 'MemberSubscribed' else 'MemberJoined' end
      when nth = 3 and released then 'InstanceReleased'
      when group_type = 'consumer' then 'MemberAdvanced' end as told_as
  from begun
)
where told_as is not null
