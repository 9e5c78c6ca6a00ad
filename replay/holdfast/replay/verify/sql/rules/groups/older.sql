-- Groups with records of older segments, of which too few columns tell; '' is what belongs to none.
--
-- {rows}: all records. `untold`: too little for any rule in SQL, since other records tell something
-- in those columns. `in_part`: too little for some kinds of entries; no row of a log is without a
-- rule, but one that stands for a checkpoint is. Records before a group's last deletion count no more.
with judged as (
  select case when type = 'RequestRecorded' then '' else grp end as grp, type,
    idx * 16777216 + (cast(ordinal as bigint) + 1048576) * 8 as at,
    case when grp <> '' and type <> 'RequestRecorded' then
      type = 'MemberSubscribed' and classic is null
      or type in ('AssignmentRequested', 'TargetStored') and assignor is null
      or type = 'GroupConverted' and converted is null
    else
      type in ('ClusterFormed', 'AccessModeChanged') and name is null
      or type in ('LevelRaised', 'RecoveryNumberRaised', 'BackupVerified') and number is null
      or type in ('SegmentSealed', 'HistoryCut') and place is null
      or type = 'SettingsChanged' and settings is null
      or type in ('TopicsCreated', 'PartitionsAdded', 'TopicsDeleted') and sizes is null
      or type = 'AclsChanged' and acls is null
      or type = 'RevocationsChanged' and revocations is null
      or type = 'RequestRecorded' and request is null
    end as untold,
    rule is not null and (
      type in ('MemberJoined', 'MemberUpdated', 'StaticMemberReplaced', 'MemberSubscribed')
        and profile is null
      or type in ('InstanceReleased', 'MemberAdvanced') and beat is null
      or type = 'RebalanceStarted' and timeout_ms is null
      or type = 'GenerationStarted' and leader is null
      or type = 'OffsetsCommitted' and beside is null
      or type = 'EpochRaised' and topics_digest is null
      or type = 'RegexResolved' and number is null
    ) as in_part
  from {rows}
), last as (
  select grp,
    max(case when untold then at end) as untold,
    max(case when in_part then at end) as in_part,
    coalesce(max(case when type = 'GroupDeleted' then at end), -1) as deleted
  from judged
  where untold or in_part or type = 'GroupDeleted'
  group by grp
)
select grp, coalesce(untold > deleted, false) as untold, coalesce(in_part > deleted, false) as in_part
from last
where untold > deleted or in_part > deleted
