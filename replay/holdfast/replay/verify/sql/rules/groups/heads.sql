-- What a group is as a whole: its state, its leader, its times; and how long its members have to wait.
--
-- It is the same for groups of both types, over their whole life, whatever they are converted to.
--
-- Reads living: the rows of each group's present life; said: what was said of each seat (members/lines.sql);
-- seats: the members that are there (members/seats.sql).
with told as (
  -- What tells something of a group as a whole; HeadKept stands for a checkpoint.
  select grp, at, type, log_time_ms, members, initial, timeout_ms, group_type, protocol_type, protocol_name,
    leader, topics_digest, number,
    coalesce(size(converted), 0) as converted,
    coalesce(type = 'GroupConverted' and group_type = 'classic', false) as to_classic,
    -- Until when somebody may still act on what he had, as epochs and checkpoints tell (S12).
    case
      when type = 'EpochRaised' and predecessor_ms > 0 then log_time_ms + predecessor_ms
      when type = 'HeadKept' then predecessor_ms
    end as until_ms
  from {living}
  where type in ('GroupCreated', 'RebalanceStarted', 'GenerationStarted', 'AssignmentStored', 'GroupEmptied',
    'GroupConverted', 'MemberJoined', 'EpochRaised', 'TargetStored', 'RegexResolved', 'HeadKept')
), moves as (
  -- Who came and who went; and until when somebody may still act, as swaps and removals tell.
  select grp, at,
    case when joins then 1 when ends then -1 end as moved,
    log_time_ms + case
      when swaps and (not beats or predecessor_ms > 0) then predecessor_ms
      when what = 'MembersRemoved' and not beats
        then case when had_stopped then 0 else coalesce(was_said.session_timeout_ms, 0) end
    end as until_ms
  from {said}
  where joins or ends or swaps
), moved_at as (
  -- Of one record as many may come as go.
  select grp, at, sum(moved) as moved, max(until_ms) as until_ms
  from moves
  group by grp, at
), filled as (
  select grp, at, until_ms,
    moved is not null and sum(moved) over (partition by grp order by at) = 0 as emptied
  from moved_at
), facts as (
  select grp, at, type, log_time_ms, members, initial, timeout_ms, group_type, protocol_type, protocol_name,
    leader, topics_digest, number, converted, to_classic, until_ms, false as emptied
  from told
  union all
  select grp, at, null, null, null, null, null, null, null, null, null, null, null, null, null, until_ms,
    emptied
  from filled
), latest as (
  select grp,
    max_by(coalesce(group_type, 'classic'), case when type in ('GroupCreated', 'GroupConverted') then at end)
      as group_type,
    max_by(
      struct(type, log_time_ms, members, initial, timeout_ms, converted),
      case when type in ('GroupCreated', 'RebalanceStarted', 'GenerationStarted', 'AssignmentStored',
        'GroupEmptied', 'GroupConverted') then at end) as phase,
    max_by(
      case when to_classic then 'consumer' else protocol_type end,
      case when type in ('MemberJoined', 'HeadKept') or to_classic then at end) as protocol_type,
    max_by(
      struct(at, protocol_name, leader),
      case when type in ('GenerationStarted', 'GroupEmptied', 'HeadKept') or to_classic then at end)
      as choice,
    coalesce(max(case when type = 'GroupConverted' then at end), 0) as turned,
    max_by(struct(at, log_time_ms), case when type = 'TargetStored' then at end) as target,
    max_by(struct(at, topics_digest as digest), case when type = 'EpochRaised' then at end) as raised,
    max_by(struct(at, log_time_ms, number), case when type = 'RegexResolved' then at end) as resolved,
    -- When the group last lost its last member.
    coalesce(max(case when emptied then at end), 0) as emptied,
    max(until_ms) as until_ms
  from facts
  group by grp
  having count(type) > 0
), places as (
  -- The seat that each member id took last.
  select grp, who, max_by(seat, at) as seat
  from {said}
  where joins or swaps
  group by grp, who
), heads as (
  -- A conversion ends what only the heartbeat protocol knows. Who leads is whoever has the seat now of the
  -- member that was chosen, if nobody left it.
  select latest.grp, latest.group_type, latest.phase, latest.protocol_type, latest.choice, latest.until_ms,
    case when latest.target.at > latest.turned and latest.target.at > latest.emptied
      then latest.target.log_time_ms end as target_ms,
    case when latest.raised.at > latest.turned then latest.raised.digest end as digest,
    case when latest.resolved.at > latest.turned then latest.resolved end as resolved,
    led.member_id as led_by
  from latest
  left join places on places.grp = latest.grp and places.who = latest.choice.leader
  left join {seats} led on led.grp = latest.grp and led.seat = places.seat and led.begun <= latest.choice.at
), entries as (
  select grp, kind, value
  from heads
  lateral view inline(array(
    struct('head' as kind, case when group_type <> 'consumer' then case
        when phase.type = 'RebalanceStarted' then 'PreparingRebalance'
        when phase.type = 'GenerationStarted' then 'CompletingRebalance'
        when phase.type = 'AssignmentStored' then 'Stable'
        when phase.type = 'GroupConverted' and phase.converted > 0 then 'Stable'
        else 'Empty'
      end end as value),
    struct('since' as kind, case when group_type <> 'consumer'
      and phase.type in ('RebalanceStarted', 'GenerationStarted')
      then cast(phase.log_time_ms as string) end as value),
    struct('protocol type' as kind, case when group_type <> 'consumer' then protocol_type end as value),
    struct('chosen' as kind, case when group_type <> 'consumer' then choice.protocol_name end as value),
    struct('leader' as kind, case when group_type = 'classic' and choice.leader <> ''
      then led_by end as value),
    struct('rejoined' as kind, case when group_type <> 'consumer' and phase.type = 'GenerationStarted'
      then array_join(phase.members, ',') end as value),
    struct('join phase' as kind, case when group_type <> 'consumer' and phase.type = 'RebalanceStarted'
      then nullif(concat_ws(':', cast(phase.initial as string), phase.timeout_ms), 'false:0') end as value),
    struct('predecessors' as kind, case when until_ms > 0 then cast(until_ms as string) end as value),
    struct('target time' as kind, case when group_type = 'consumer' and target_ms >= 0
      then cast(target_ms as string) end as value),
    struct('digest' as kind, case when group_type = 'consumer' then lower(hex(digest)) end as value),
    struct('expressions' as kind, case when group_type = 'consumer' and resolved.log_time_ms >= 0
      then concat_ws(':', resolved.log_time_ms, resolved.number) end as value)
  )) v as kind, value
  where value <> ''
), grants as (
  -- What was given to each member alone, and, of the group, what was given to all, and what was told.
  select grp, member_id, begun, given, cast(null as bigint) as at, cast(null as bigint) as until_ms,
    cast(null as bigint) as stored_at, cast(null as bigint) as stored_ms
  from {seats}
  union all
  select grp, null, null, null, at, until_ms,
    case when type = 'AssignmentStored' then at end,
    case when type = 'AssignmentStored' then log_time_ms end
  from told
  where type = 'AssignmentStored' or until_ms is not null
  union all
  select grp, null, null, null, at, until_ms, null, null
  from moves
  where until_ms is not null
), assigned as (
  select grp, member_id, begun, given, at, until_ms,
    max(stored_at) over whole as stored_at,
    max_by(stored_ms, stored_at) over whole as stored_ms
  from grants
  window whole as (partition by grp)
), newest as (
  -- An assignment gives to all that are there then.
  select *,
    coalesce(stored_at > begun and (given is null or stored_at > given.at), false) as by_group
  from assigned
), in_order as (
  select grp, member_id, until_ms,
    case when member_id is null then 1 else 0 end as nth,
    case when member_id is null then at when by_group then stored_at else given.at end as at,
    case when by_group then stored_ms else given.log_time_ms end as log_time_ms,
    case when not by_group then given.ms end as ms
  from newest
), waits as (
  -- How long is told by the event itself, or else by what had been told of the group before it.
  select grp, member_id,
    coalesce(ms, greatest(max(until_ms) over (partition by grp order by at, nth) - log_time_ms, 0)) as ms
  from in_order
)
select grp, kind, '' as key, value
from entries
union all
select grp, 'predecessor', member_id, cast(ms as string)
from waits
where member_id is not null and ms > 0
