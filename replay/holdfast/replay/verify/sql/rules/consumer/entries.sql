-- The state of groups of the heartbeat protocol, without offsets and without who is to compute
-- (consumer/choices.sql), as entries.
-- living: the records of these groups; said: what they say of members (consumer/said.sql); seats: the
-- members that are there (consumer/seats.sql); held: who owns what (consumer/holdings.sql).
with epochs as (
  -- The group epoch, and the epoch of the last target.
  select grp, kind, '' as key, cast(value as string) as value
  from (
    select grp,
      coalesce(max_by(epoch, case when type = 'EpochRaised' then at end), 1) as raised,
      coalesce(max_by(epoch, case when type = 'TargetStored' then at end), 1) as stored
    from {living}
    group by grp
  )
  lateral view inline(array(
    struct('generation' as kind, raised as value),
    struct('assignment epoch' as kind, stored as value))) v as kind, value
), told as (
  -- Of a target are told its partitions, and what an assignor in a member says beside them.
  select grp, member_id, instance_id, speaks, wants, progress,
    concat(
      array_join(
        transform(target.partitions, part -> concat(
          part.topic, ':', array_join(transform(part.partitions, n -> cast(n as string)), ','))),
        ';'),
      '|', cast(coalesce(target.version, 0) as string),
      '|', coalesce(lower(hex(target.metadata)), '')) as aim
  from {seats}
), members as (
  -- Who each member is, what it wants, where it is, and what it is to own.
  select grp, kind, key, value
  from told
  lateral view inline(array(
    struct('member' as kind, member_id as key, coalesce(instance_id, '') as value),
    struct('instance' as kind, instance_id as key, member_id as value),
    struct('protocol' as kind, member_id as key, case when speaks then 'classic' end as value),
    struct('subscription' as kind, member_id as key, wants as value),
    struct('progress' as kind, member_id as key, progress as value),
    struct('target' as kind, member_id as key, case when aim <> '|0|' then aim end as value)
  )) v as kind, key, value
  where key is not null and value is not null
), resolved as (
  select grp, regex, max(at) as at, max_by(topics, at) as topics
  from {living}
  where type = 'RegexResolved' and regex is not null
  group by grp, regex
), spoken as (
  -- The expression of a member from then on, and the one before; "" is none.
  select grp, at, now, lag(now, 1, '') over (partition by grp, seat order by at) as was
  from (
    select grp, seat, at, case when type = 'MemberSubscribed' then regex else '' end as now
    from {said}
    where type in ('MemberSubscribed', 'MembersLeft', 'MembersRemoved', 'MemberExpired')
  )
), counted as (
  select grp, regex, at, sum(more) as more
  from spoken
  lateral view inline(array(
    struct(now as regex, 1 as more), struct(was as regex, -1 as more))) v as regex, more
  where now <> was
  group by grp, regex, at
), forgotten as (
  -- When each expression last lost its last member.
  select grp, regex, max(at) as at
  from (
    select grp, regex, at, sum(more) over (partition by grp, regex order by at) as users from counted
  )
  where users = 0
  group by grp, regex
), regexes as (
  -- The topics of each expression that some member had ever since (K-P7).
  select r.grp, 'regex' as kind, r.regex as key, coalesce(array_join(r.topics, ','), '') as value
  from resolved r
  left join forgotten f on f.grp = r.grp and f.regex = r.regex
  where f.at is null or f.at < r.at
)
select grp, kind, key, value from epochs
union all
select grp, kind, key, value from members
union all
select grp, 'owned', concat_ws('/', topic, partition), concat_ws(':', member_id, epoch, granted, how)
from {held}
union all
select grp, kind, key, value from regexes
