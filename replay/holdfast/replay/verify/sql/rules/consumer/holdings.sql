-- Who owns each partition, by what grant: in which seat, since which epoch and entry (S13, K-O16). What a
-- group brings from another type keeps the token that it had there: no value of `granted`, if that is not
-- known.
-- present: what records say of members that are there (consumer/present.sql); seats: the member in each
-- seat (consumer/seats.sql).
with moves as (
  -- The partitions of each step; of one that is in two lists, what changes it last has the greatest `nth`:
  -- what comes back is granted last.
  select grp, seat, at, nth, how, renewed, epoch, part.topic as topic, partition,
    case when carried then token else at div 16777216 end as token
  from {present}
  lateral view inline(array(
    struct(0 as nth, 'freed' as how, freed as parts),
    struct(0 as nth, 'asked_back' as how, asked_back as parts),
    struct(1 as nth, 'granted' as how, granted as parts))) l as nth, how, parts
  lateral view explode(parts) t as part
  lateral view explode(part.partitions) n as partition
  where type = 'MemberAdvanced'
), moved as (
  -- What last happened to each partition in a seat, and when it was last granted.
  select grp, seat, topic, partition,
    max(struct(at, nth, how, renewed)) as newest,
    max(case when how = 'granted' then struct(at, epoch, token) end) as given
  from moves
  group by grp, seat, topic, partition
), held as (
  -- A release frees what its member was asked to give up (K-N23).
  select m.grp, m.seat, s.member_id, m.topic, m.partition, m.newest, m.given, s.released, s.last_renewed,
    m.newest.how = 'asked_back' as asked
  from moved m
  join {seats} s on s.grp = m.grp and s.seat = m.seat
  where m.newest.how <> 'freed'
    and not coalesce(m.newest.how = 'asked_back' and greatest(s.released, s.swapped) > m.newest.at, false)
)
-- A release lets its successor commit whatever epoch it knows (K-J41). What is asked back is not granted
-- anew with the rest.
select grp, seat, member_id, topic, partition,
  case when released > given.at then 0 else given.epoch end as epoch,
  greatest(given.token, (case when asked then newest.renewed else last_renewed end) div 16777216) as granted,
  case when asked then 'revoking' else '' end as how
from held
