-- What each member said, one row a kind, in the form of `member_entries.entries_of`.
--
-- Reads seats: the members that are there (members/seats.sql); kept_from: one row, from where on principals are
-- kept.
with known as (
  select *,
    case when came >= (select kept_from from {kept_from}) then principal end as owner,
    concat(
      coalesce(asked_before, cast(array() as array<string>)),
      coalesce(transform(asked, a -> a.was_asked), cast(array() as array<string>))) as requests,
    greatest(coalesce(life_before, ''), coalesce(life_kept, '')) as earlier_life
  from {seats}
)
select grp, kind, member_id as key, value
from known
lateral view inline(array(
  struct('client' as kind, concat_ws('|', profile.client_id, profile.client_host) as value),
  struct('timeouts' as kind, concat_ws(':',
    coalesce(said.session_timeout_ms, 0), coalesce(profile.rebalance_timeout_ms, 0)) as value),
  struct('protocols' as kind, array_join(transform(said.protocols, p -> concat_ws(':',
    p.name, lower(hex(p.metadata)), coalesce(array_join(p.topics, ','), ''))), ';') as value),
  struct('request id' as kind, request_id as value),
  struct('joined' as kind, concat_ws(':', joined_seq, since_ms) as value),
  struct('principal' as kind, owner as value),
  -- Of earlier holders of a seat the last eight request ids are kept (S14).
  struct('replaced' as kind, nullif(concat(
    array_join(slice(requests, greatest(size(requests) - 7, 1), 8), ','), '|', earlier_life), '|') as value),
  struct('released' as kind, case when released and not beats then 'released' end as value),
  -- What only the heartbeat protocol knows.
  struct('place' as kind, case when beats then nullif(concat_ws('|',
    coalesce(wants.rack_id, ''), coalesce(wants.server_assignor, '')), '|') end as value),
  struct('client assignors' as kind, case when beats then array_join(transform(wants.client_assignors,
    a -> concat_ws(':', a.name, a.minimum_version, a.maximum_version, a.reason, a.version,
      lower(hex(a.metadata)))), ';') end as value),
  struct('beat' as kind, case when beats then nullif(concat_ws(':',
    coalesce(life, ''), coalesce(beat, 0)), ':0') end as value),
  struct('session' as kind, case when beats then nullif(concat_ws(':',
    coalesce(session_ms, 0), coalesce(unhurried_ms, 0), coalesce(absence_ms, 0)), '0:0:0') end as value)
)) v as kind, value
where value <> ''
