-- The member in each seat that is taken: what it wants, where it is, and what it is to own; each is what
-- was said of the seat last.
-- present: what records say of members that are there (consumer/present.sql).
select grp, seat,
  max_by(member_id, case when came then at end) as member_id,
  max_by(instance_id, case when came then at end) as instance_id,
  max_by(concat_ws('|', coalesce(array_join(topics, ','), ''), regex),
    case when type = 'MemberSubscribed' then at end) as wants,
  -- A member's epoch, the one before (K-M11), and whether it waits for others (K-O8).
  max_by(
    concat_ws(':', step.now, case when came then 0 else epoch_before end,
      case when waiting then 'waiting' else '' end),
    case when step is not null then at end) as progress,
  max_by(target, case when type = 'TargetStored' then at end) as target,
  max(case when type = 'InstanceReleased' then at end) as released,
  max(case when type = 'StaticMemberReplaced' then at end) as swapped,
  max_by(speaks, case when speaks is not null then at end) as speaks,
  max(renews) as last_renewed
from {present}
group by grp, seat
