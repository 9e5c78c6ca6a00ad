-- Who is to compute a group's target, who is late, and whose assignor made the target (KIP-848).
-- The member that was asked last is to compute, until there is a target or its process is gone; who
-- was asked and did not install a target in time is late.
-- living: the records of groups of the heartbeat protocol; said: what they say of members
-- (consumer/said.sql).
with groups as (
  select grp,
    max(case when type = 'AssignmentRequested' then struct(at, member_id, epoch, assignor) end) as asked,
    max(case when type = 'TargetStored' then at end) as stored,
    max(case when type in ('RegexResolved', 'StaticMemberReplaced') then at end) as overtaken,
    max_by(case when installed_by <> '' then assignor end, case when type = 'TargetStored' then at end)
      as client_assignor
  from {living}
  where type in ('AssignmentRequested', 'TargetStored', 'RegexResolved', 'StaticMemberReplaced')
  group by grp
), stopped as (
  -- When a member id departed, released its instance, or another one took that.
  select grp, stopped_id, max(at) as at
  from (
    select grp, at,
      case when type = 'StaticMemberReplaced' then old_member_id else member_id end as stopped_id
    from {said}
    where type in ('MembersLeft', 'MembersRemoved', 'MemberExpired')
      or type in ('InstanceReleased', 'StaticMemberReplaced')
  )
  group by grp, stopped_id
), asked as (
  -- The member that was asked last, if it still is to compute. It is told whether what it was given
  -- may be of the past: since then a member goes on under another id, or the topics of an expression
  -- were looked up.
  select g.grp, 'asked' as kind,
    concat_ws(':', g.asked.member_id, g.asked.epoch, g.asked.assignor,
      case when g.overtaken > g.asked.at then 'overtaken' else '' end) as value
  from groups g
  left join stopped s on s.grp = g.grp and s.stopped_id = g.asked.member_id
  where g.asked is not null and not coalesce(greatest(g.stored, s.at) > g.asked.at, false)
), marks as (
  -- What made members late, or might end that: what happens to the process in a seat, and what is
  -- said of a member id without its seat: that it was late, and that it installed a target after all.
  select grp, at,
    case when joined then 'came'
      when type = 'StaticMemberReplaced' then 'swapped'
      when type = 'InstanceReleased' then 'released'
      else 'gone' end as mark,
    member_id, seat, old_member_id, cast(null as string) as asked_id
  from {said}
  where joined
    or type in ('MembersLeft', 'MembersRemoved', 'MemberExpired')
    or type in ('InstanceReleased', 'StaticMemberReplaced')
  union all
  select grp, at,
    case when type = 'AssignmentRequested' then 'named' else 'installed' end,
    case when type = 'AssignmentRequested' then late else installed_by end,
    cast(null as string), cast(null as string),
    case when type = 'AssignmentRequested' then member_id end
  from {living}
  where type in ('AssignmentRequested', 'TargetStored')
), chosen as (
  -- At each mark, who was asked last and when; nobody, if a target came of it.
  select grp, at, mark, member_id, seat, old_member_id,
    last_value(case when mark in ('named', 'installed') then struct(asked_id, at) end) ignore nulls
      over (partition by grp order by at) as choice
  from marks
), seated as (
  -- The seat that an id took last; `asked`: when the old process of a swap was to compute, if nothing
  -- had come of it yet.
  select grp, at, mark, member_id,
    last_value(seat) ignore nulls over (partition by grp, member_id order by at) as seat,
    case when mark = 'swapped' and choice.asked_id = old_member_id then choice.at end as asked
  from chosen
), placed as (
  -- Whether the id is in its seat still, and since when that seat's process runs. A stranger, and
  -- the "" that names nobody, have no seat and are passed over.
  select grp, at, mark, member_id, seat, asked,
    max(case when mark in ('came', 'swapped', 'gone', 'released') then at end) over (
      partition by grp, seat order by at
      rows between unbounded preceding and 1 preceding) as since,
    last_value(case when mark in ('came', 'swapped') then member_id when mark = 'gone' then '' end)
      ignore nulls over (partition by grp, seat order by at) = member_id as there
  from seated
  where seat is not null
), seats as (
  -- Being late is passed on with the seat: the process in whose place one came that was to compute,
  -- or was late, is late since then, unless the old one had said that it stops (INV-16).
  select grp, seat,
    max_by(member_id, case when mark in ('came', 'swapped') then at end) as member_id,
    max(case when (mark = 'named' and there) or (mark = 'swapped' and asked > since) then at end) as became,
    max(case when mark in ('gone', 'released') or (mark = 'installed' and there) then at end) as struck,
    max(case when mark = 'swapped' then at end) as passed
  from placed
  group by grp, seat
), late as (
  -- The late ones, in the order in which they became so last.
  select grp, 'late' as kind,
    array_join(
      transform(
        array_sort(collect_list(struct(greatest(became, passed) as since, member_id))),
        each -> each.member_id),
      ',') as value
  from seats
  where became is not null and (struck is null or struck < became)
  group by grp
)
select grp, kind, '' as key, value from asked
union all
select grp, kind, '', value from late
union all
-- The assignor of the last target, if it ran in a member.
select grp, 'client assignor', '', client_assignor from groups where client_assignor is not null
