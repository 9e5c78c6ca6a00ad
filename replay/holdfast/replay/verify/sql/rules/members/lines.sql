-- What was said of each seat, in all its lines, with what was known of it before.
--
-- A member's seat is what a swap passes on: that of its instance, or of its id if it has none. All that is
-- said of a seat since somebody joined it is one line of rows; what its holder said last counts. A
-- conversion goes on with the line: it ends what only the heartbeat protocol knows.
--
-- Reads living: the rows of each group's present life.
with told as (
  -- One row for each member that a record tells of. Who rejoined is told with the id of the request that
  -- this serves, which stands at the same place of another list. What a checkpoint tells of a member is
  -- MemberKept.
  select grp, at, grp_seq, log_time_ms, principal, instance_id, joined, group_type, profile, classic_profile,
    life, beat, session_timeout_ms, absence_ms, number, predecessor_ms, late,
    size(granted) as granted,
    case when type = 'MemberKept' then members end as asked_before,
    it.who as who,
    it.what as what,
    case when it.what = 'Rejoined' then try_element_at(served, n + 1) else join_id end as served_id
  from {living}
  lateral view posexplode(case
    when type in ('MemberJoined', 'MemberUpdated', 'StaticMemberReplaced', 'InstanceReleased',
        'MemberExpired', 'MemberRefused', 'MemberSubscribed', 'MemberAdvanced', 'MemberKept')
      then array(struct(member_id as who, type as what))
    when type in ('MembersLeft', 'MembersRemoved')
      then transform(members, m -> struct(m as who, type as what))
    when type = 'GenerationStarted'
      then concat(
        coalesce(
          transform(case when served is not null then members end, m -> struct(m as who, 'Rejoined' as what)),
          array()),
        coalesce(transform(removed, m -> struct(m as who, 'Gone' as what)), array()))
    when type = 'GroupConverted'
      then transform(converted, c -> struct(c.member_id as who, type as what))
  end) v as n, it
), named as (
  select *,
    -- What begins a line.
    coalesce(what = 'MemberJoined' or (what = 'MemberSubscribed' and joined), false) as joins,
    what = 'StaticMemberReplaced' as swaps,
    what in ('Gone', 'MembersLeft', 'MembersRemoved', 'MemberExpired', 'MemberRefused') as ends
  from told
), taken as (
  select *,
    last_value(case when joins or swaps then struct(instance_id as id) end) ignore nulls
      over (partition by grp, who order by at) as took
  from named
), seated as (
  select *, coalesce(concat('i:', took.id), concat('m:', who)) as seat
  from taken
), typed as (
  -- A group that somebody joined classic is of that type, and so on.
  select *,
    last_value(case
      when what = 'MemberJoined' then false
      when what = 'MemberSubscribed' then true
      when what = 'GroupConverted' then group_type = 'consumer'
    end) ignore nulls over (partition by grp, seat order by at) as beats
  from seated
), heard as (
  -- A swap in a group of the heartbeat protocol by a process that does not speak the classic one says nothing
  -- of that.
  select *,
    beats and swaps and size(profile.protocols) = 0 as silent,
    what in ('MemberJoined', 'MemberUpdated', 'MemberSubscribed') or swaps as speaks,
    joins or swaps or what = 'GroupConverted' as fresh
  from typed
), words as (
  -- What a row says of the classic protocol, of timeouts, and of the life of a process.
  select *,
    case when speaks then struct(
      case
        when what = 'MemberSubscribed' then case when classic_profile is not null then struct(
          classic_profile.session_timeout_ms as session_timeout_ms,
          classic_profile.protocols as protocols) end
        when not silent then struct(
          profile.session_timeout_ms as session_timeout_ms,
          profile.protocols as protocols)
      end as said) end as says,
    case when speaks or what = 'Rejoined' then struct(
      case
        when what = 'MemberSubscribed' then classic_profile.request_id
        when not silent then served_id
      end as id) end as asks,
    case
      when joins then coalesce(life, '')
      when fresh then ''
      when what = 'MemberSubscribed' and life <> '' then life
    end as lives,
    case
      when what = 'InstanceReleased' then true
      when joins or swaps or what = 'MemberAdvanced' then false
    end as stops
  from heard
), past as (
  select *,
    last_value(says) ignore nulls over earlier as said_before,
    last_value(asks) ignore nulls over earlier as asked_last,
    last_value(lives) ignore nulls over earlier as was_life,
    last_value(profile.rebalance_timeout_ms) ignore nulls over earlier as was_given_ms,
    last_value(stops) ignore nulls over earlier as had_stopped
  from words
  window earlier as (partition by grp, seat order by at rows between unbounded preceding and 1 preceding)
)
select grp, seat, at, who, what, joins, swaps, ends, beats, grp_seq, log_time_ms, principal, profile, beat,
  session_timeout_ms, absence_ms, number, predecessor_ms, late, granted, asked_before, says, asks, lives,
  stops,
  said_before.said as was_said,
  asked_last.id as was_asked,
  was_life,
  was_given_ms,
  had_stopped,
  -- Since when the present line runs, and when somebody left the seat last.
  max(case when joins then at end) over whole as begun,
  max(case when ends then at end) over whole as ended,
  max(case when fresh or lives <> was_life then at end) over whole as renewed,
  max(case when fresh then at end) over whole as freshened,
  max(case when what = 'GroupConverted' then at end) over whole as converted_at
from past
window whole as (partition by grp, seat)
