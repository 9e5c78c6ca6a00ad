-- What was said of members that are there, from their joining on: a seat begins when a member joins, and
-- ends when one departs.
-- said: what records say of members (consumer/said.sql).
with placed as (
  select *,
    max(case when joined then at end) over (partition by grp, seat) as begun,
    max(case when type in ('MembersLeft', 'MembersRemoved', 'MemberExpired') then at end)
      over (partition by grp, seat) as ended
  from {said}
), stepped as (
  -- A step sets the epoch of a member: to -2, if it releases its instance. `speaks`: who says by this
  -- which protocol it speaks, whether it is the classic one (K-Q5, K-Q7); a swap by a classic join is of
  -- a process that speaks that.
  select grp, seat, at, type, member_id, instance_id, joined, came, carried, token, epoch, topics, regex,
    waiting, granted, asked_back, freed, target,
    case when came then struct(type, 0 as now)
      when type = 'InstanceReleased' then struct(type, -2 as now)
      when type = 'MemberAdvanced' then struct(type, epoch as now) end as step,
    case when type = 'MemberSubscribed' then coalesce(classic, false)
      when type = 'StaticMemberReplaced' then coalesce(command = 'JoinGroup', false) end as speaks
  from placed
  where at >= begun and (ended is null or ended < begun)
), earlier as (
  -- The step before each record, and what the member spoke before.
  select *,
    last_value(step) ignore nulls over (
      partition by grp, seat order by at rows between unbounded preceding and 1 preceding) as before,
    last_value(speaks) ignore nulls over (
      partition by grp, seat order by at rows between unbounded preceding and 1 preceding) as spoke
  from stepped
), renewing as (
  -- What grants all that a seat owns anew, beside what it grants (S12, S13). That is a swap whose holder
  -- had not released the instance: both processes may run. A member of the classic protocol is told one
  -- token, so all gets that of the newest grant; and as a member begins to speak that protocol.
  select *,
    case
      when carried then null
      when type = 'StaticMemberReplaced' and (speaks or not coalesce(before.type = 'InstanceReleased', false))
        then at
      when type = 'MemberSubscribed' and not coalesce(joined, false) and speaks and not coalesce(spoke, false)
        then at
      when type = 'MemberAdvanced' and size(granted) > 0 and spoke then at
    end as renews
  from earlier
)
select grp, seat, at, type, member_id, instance_id, came, carried, token, epoch, topics, regex, waiting,
  granted, asked_back, freed, target, step, before.now as epoch_before, speaks, renews,
  last_value(renews) ignore nulls over (
    partition by grp, seat order by at rows between unbounded preceding and 1 preceding) as renewed
from renewing
