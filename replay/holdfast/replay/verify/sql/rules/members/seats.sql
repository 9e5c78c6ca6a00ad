-- The members that are there, with what each said last.
--
-- Reads said: what was said of each seat (members/lines.sql).
with present as (
  -- The present line of each seat that nobody has left since. What the heartbeat protocol told ends as the
  -- group is converted.
  select *,
    joins or swaps as came,
    what = 'MemberSubscribed' and at > coalesce(converted_at, 0) as subscribed,
    at > freshened as since
  from {said}
  where at >= begun and (ended is null or ended < begun)
), granting as (
  select *,
    -- A member whose new rebalance timeout is shorter is waited for as long as the old one lasts.
    case when since and subscribed and not joins and beat > 0 and profile.rebalance_timeout_ms < was_given_ms
      then log_time_ms + was_given_ms end as until_ms,
    -- When a member was given something, and how long an older holder may still act on it (S12). Null: that
    -- is to be told by what its group knows then (groups/heads.sql).
    cast(case
      when joins then 0
      when swaps or what = 'MemberKept' then predecessor_ms
    end as bigint) as wait_ms
  from present
)
select grp, seat,
  max(begun) as begun,
  max_by(who, case when came then at end) as member_id,
  max(case when came then at end) as came,
  max_by(log_time_ms, case when came then at end) as since_ms,
  max_by(coalesce(number, grp_seq), case when joins then at end) as joined_seq,
  max_by(principal, case when came then at end) as principal,
  max_by(beats, at) as beats,
  max_by(says, case when says is not null then at end).said as said,
  max_by(asks, case when asks is not null then at end).id as request_id,
  max_by(profile, case when profile is not null and what <> 'MemberKept' then at end) as profile,
  max_by(profile, case when subscribed then at end) as wants,
  max_by(lives, case when lives is not null then at end) as life,
  max(case when at >= renewed then beat end) as beat,
  max(case when swaps then was_life end) as life_before,
  max_by(late, case when what = 'MemberKept' then at end) as life_kept,
  max_by(session_timeout_ms, case when subscribed and session_timeout_ms > 0 then at end) as session_ms,
  greatest(max(until_ms), max(case when what = 'MemberKept' and since then number end)) as unhurried_ms,
  max_by(absence_ms, case when what = 'InstanceReleased' and since then at end) as absence_ms,
  max_by(stops, case when stops is not null then at end) as released,
  -- The requests of those that had the seat before, and what a checkpoint tells of them.
  array_sort(collect_list(struct(at, was_asked)) filter (where swaps and was_asked <> '')) as asked,
  max_by(asked_before, case when what = 'MemberKept' then at end) as asked_before,
  max(case when wait_ms is not null or (what = 'MemberAdvanced' and granted > 0)
    then struct(at, log_time_ms, wait_ms as ms) end) as given
from granting
group by grp, seat
