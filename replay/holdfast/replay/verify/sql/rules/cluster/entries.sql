-- The state that belongs to no group, without the dedupe table: each key is what was said of it last.
--
-- Reads rows: all records; own: the cluster's own of them, which are few; kept_from: one row, from where on
-- members keep principals, and topics tell when they were created.
with told as (
  select at, idx, grp_seq, type, name, number, place,
    concat_ws('.', place.idx, place.ordinal) as place_text
  from {own}
), counters as (
  select
    max_by(name, case when type = 'ClusterFormed' then at end) as id,
    max(idx) as version,
    max_by(grp_seq, at) as seq,
    max_by(number, case when type = 'RecoveryNumberRaised' then at end) as recovery_number,
    max(case when type = 'RecoveryNumberRaised' then at end) div 16777216 as recovered_at,
    max_by(place_text, case when type = 'SegmentSealed' then at end) as sealed,
    max_by(number, case when type = 'LevelRaised' then at end) as level,
    max_by(case when name <> 'open' then name end, case when type = 'AccessModeChanged' then at end)
      as access_mode,
    max_by(
      concat_ws(':', place_text, place.log_time_ms, lower(hex(place.digest))),
      case when type = 'HistoryCut' then at end) as history_cut,
    max(case when type = 'BackupVerified' then number end) as backed_up
  from told
), counted as (
  select 'cluster' as kind, key, value
  from counters
  lateral view inline(array(
    struct('id' as key, id as value),
    struct('version' as key, cast(version as string) as value),
    struct('seq' as key, cast(seq as string) as value),
    struct('recovery number' as key, cast(recovery_number as string) as value),
    struct('recovered at' as key, cast(recovered_at as string) as value),
    struct('sealed' as key, sealed as value),
    struct('level' as key, cast(level as string) as value),
    struct('access mode' as key, access_mode as value),
    struct('history cut' as key, history_cut as value),
    struct('backed up' as key, cast(backed_up as string) as value)
  )) v as key, value
  where value <> ''
), clock as (
  select max(log_time_ms) as log_time_ms from {rows}
), said as (
  -- A setting without a value has the inherited one again; so a key whose last value is null is gone.
  select 'setting' as kind, concat_ws(':', scope, it.key) as key, at, n, it.value as value
  from {own}
  lateral view posexplode(settings) v as n, it
  union all
  select 'acl', concat_ws('|', it.principal, it.role, it.kind, it.name), at, n,
    case when it.granted then '' end
  from {own}
  lateral view posexplode(acls) v as n, it
  union all
  select 'revocation', it.fingerprint, at, n,
    case when it.revoked_ms is not null
      then concat_ws('|', it.principal, it.expires_ms, it.reason, it.revoked_ms) end
  from {own}
  lateral view posexplode(revocations) v as n, it
), said_last as (
  select kind, key, max(struct(at, n, value)) as latest
  from said
  group by kind, key
), sizes as (
  select it.name as key, at, n, it.num_partitions as partitions, type = 'TopicsCreated' as creates
  from {own}
  lateral view posexplode(sizes) v as n, it
), topics as (
  select key,
    max(struct(at, n, partitions)) as latest,
    max(case when creates then at end) as created
  from sizes
  group by key
)
select '' as grp, kind, key, value
from counted
union all
select '', 'cluster', 'log time', cast(log_time_ms as string)
from clock
where log_time_ms is not null
union all
select '', kind, key, latest.value
from said_last
where latest.value is not null
union all
-- A topic's size, and the entry that created it, if that level was in force.
select '', 'topic', key, concat_ws(':', latest.partitions, case
    when created > (select kept_from from {kept_from}) then created div 16777216
    when created is not null then 0
  end)
from topics
where latest.partitions is not null
