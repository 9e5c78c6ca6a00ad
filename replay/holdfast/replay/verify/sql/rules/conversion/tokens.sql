-- The members of each conversion, with the token that each brings into the phase (S13).
-- members: those of each conversion (conversion/members.sql); held: who owns what in phases of the heartbeat
-- protocol (consumer/holdings.sql); granted: what members of classic phases hold. The groups of these two are
-- pairs of `grp` and `phase`.
with ends as (
  select grp, seat, max(granted) as granted, true as holds from {held} group by grp, seat
  union all
  select grp, identity, granted, false from {granted}
), told as (
  -- What the phase before has granted tells it. Who owned nothing there gets all anew as it becomes a classic
  -- member.
  select m.*,
    case when m.group_type <> 'consumer' and not coalesce(e.holds, false) then m.at div 16777216
      else e.granted end as told
  from {members} m
  left join (select grp.grp as grp, grp.phase + 1 as phase, seat, granted, holds from ends) e
    on e.grp = m.grp and e.phase = m.phase and e.seat = m.seat
)
-- If that granted nothing, the member still has the token that it brought into it.
select grp, phase, present, at, group_type, generation, member_id, instance_id, seat, released, topics,
  partitions, last_value(told) ignore nulls over (partition by grp, seat order by phase) as token
from told
