-- Who is in each classic group, what each member holds, and the index of the entry that granted it.
--
-- An assignment writes every member's key; a join phase that opens before the assignment arrives
-- clears them (Kafka's rule for CompletingRebalance); a swap keeps the key under a new index, if the
-- instance had any. What a group brings from another type keeps the token that it had there: no
-- value of `granted`, if that is not known.
--
-- {living}: the records of these groups. `identity` stays the same in a swap: the instance of a
-- static member, the id of a dynamic one.
with told as (
  select grp, at, type, token, instance_id, who, comes,
    coalesce(concat('i:', instance_id), concat('m:', who)) as identity
  from {living}
  lateral view inline(
    case
      when type = 'MemberJoined' then array(struct(member_id as who, true as comes))
      when type = 'StaticMemberReplaced'
        then array(struct(old_member_id as who, false as comes), struct(member_id as who, true as comes))
      when type in ('MemberExpired', 'MemberRefused')
        then array(struct(member_id as who, false as comes))
      when type in ('MembersLeft', 'MembersRemoved')
        then transform(members, member -> struct(member as who, false as comes))
      when removed is not null
        then transform(removed, member -> struct(member as who, false as comes))
    end
  ) each as who, comes
), last_told as (
  select grp, who, max_by(struct(comes, instance_id, identity), at) as last
  from told
  group by grp, who
), members as (
  -- Ids that came after they last departed.
  select grp, who as member_id, last.instance_id, last.identity
  from last_told
  where last.comes
), since as (
  -- When somebody last joined with each identity, and when it was last swapped.
  select grp, identity,
    max(case when type = 'MemberJoined' then at end) as joined,
    max_by(token, case when type = 'MemberJoined' then at end) as token,
    max(case when type = 'StaticMemberReplaced' then at end) as swapped
  from told
  where comes
  group by grp, identity
), phases as (
  select grp, at, type, grants, carried,
    lag(type) over (partition by grp order by at) as before
  from {living}
  where type in ('RebalanceStarted', 'GenerationStarted', 'AssignmentStored', 'GroupEmptied')
), given as (
  select grp,
    max(case when type = 'RebalanceStarted' and before = 'GenerationStarted' then at end) as wiped,
    max(case when type = 'AssignmentStored' then at end) as stored,
    max_by(grants, case when type = 'AssignmentStored' then at end) as grants,
    max_by(carried, case when type = 'AssignmentStored' then at end) as carried
  from phases
  group by grp
), names as (
  select distinct grp, who, identity from told where comes
), assigned as (
  -- What the last assignment has for each identity.
  select each.grp, identity, min(lower(hex(each.assignment))) as assignment
  from (
    select grp, one.member_id, one.assignment from given lateral view explode(grants) g as one
  ) as each
  join names on names.grp = each.grp and names.who = each.member_id
  group by each.grp, identity
), known as (
  select members.grp, members.identity, member_id, instance_id, assignment, wiped, stored, token,
    carried,
    coalesce(stored > joined, false) as counts,
    case when swapped > joined then swapped div 16777216 end as swapped
  from members
  join since on since.grp = members.grp and since.identity = members.identity
  left join given on given.grp = members.grp
  left join assigned on assigned.grp = members.grp and assigned.identity = members.identity
), judged as (
  select *, counts and coalesce(wiped < stored, true) as kept from known
)
select grp, identity, member_id, instance_id,
  case when counts
    then greatest(case when carried then token else stored div 16777216 end, swapped)
    else 0
  end as granted,
  case when kept then coalesce(assignment, '') else '' end as held,
  case when counts and not kept then assignment end as abandoned
from judged
