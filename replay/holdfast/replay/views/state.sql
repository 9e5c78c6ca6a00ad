-- Made by `./dev docs` from the rules in replay/holdfast/replay/verify/sql/rules.

-- What Spark's SQL has and DuckDB's has not.
create or replace macro get(list, n) as list[n + 1];
create or replace macro conv(digits, of_base, to_base) as ('0x' || digits)::bigint;
create or replace macro crc32(content) as xor(4294967295, list_reduce(
  list_prepend(4294967295::bigint,
    [('0x' || byte)::bigint for byte in regexp_extract_all(hex(content), '..')]),
  lambda crc, byte: xor(crc >> 8, list_reduce(
    list_prepend(xor(crc, byte) & 255, range(8)),
    lambda rest, n: case when rest & 1 = 1 then xor(rest >> 1, 3988292384) else rest >> 1 end))));

create or replace table lacking (idx BIGINT, ordinal INT, grp TEXT, grp_seq BIGINT, log_time_ms BIGINT, wall_time_ms BIGINT, type TEXT, rule TEXT, command TEXT, principal TEXT, request_id TEXT, generation INT, member_id TEXT, old_member_id TEXT, instance_id TEXT, members TEXT[], removed TEXT[], served TEXT[], grants STRUCT(member_id TEXT, assignment BLOB)[], offsets STRUCT(topic TEXT, partition INT, "offset" BIGINT)[], reason TEXT, payload BLOB, chain BLOB, group_type TEXT, epoch INT, joined BOOLEAN, topics TEXT[], regex TEXT, targets STRUCT(member_id TEXT, partitions STRUCT(topic TEXT, partitions INT[])[], version INT, metadata BLOB)[], asked_back STRUCT(topic TEXT, partitions INT[])[], freed STRUCT(topic TEXT, partitions INT[])[], granted STRUCT(topic TEXT, partitions INT[])[], waiting BOOLEAN, classic BOOLEAN, assignor TEXT, late TEXT, installed_by TEXT, converted STRUCT(member_id TEXT, topics TEXT[], partitions STRUCT(topic TEXT, partitions INT[])[])[], name TEXT, number BIGINT, place STRUCT(idx BIGINT, ordinal INT, log_time_ms BIGINT, digest BLOB), scope TEXT, settings STRUCT(key TEXT, value TEXT)[], sizes STRUCT(name TEXT, num_partitions INT)[], acls STRUCT(principal TEXT, role TEXT, kind TEXT, name TEXT, granted BOOLEAN)[], revocations STRUCT(fingerprint TEXT, principal TEXT, expires_ms BIGINT, reason TEXT, revoked_ms BIGINT)[], request STRUCT(request_id TEXT, digest BLOB, answer BLOB), beside STRUCT(leader_epoch INT, metadata TEXT)[], profile STRUCT(client_id TEXT, client_host TEXT, rebalance_timeout_ms INT, session_timeout_ms INT, protocols STRUCT(name TEXT, metadata BLOB, topics TEXT[])[], rack_id TEXT, server_assignor TEXT, client_assignors STRUCT(name TEXT, minimum_version INT, maximum_version INT, reason INT, version INT, metadata BLOB)[]), classic_profile STRUCT(session_timeout_ms INT, protocols STRUCT(name TEXT, metadata BLOB, topics TEXT[])[], request_id TEXT), join_id TEXT, predecessor_ms BIGINT, life TEXT, beat BIGINT, session_timeout_ms INT, absence_ms INT, protocol_type TEXT, protocol_name TEXT, leader TEXT, initial BOOLEAN, timeout_ms BIGINT, topics_digest BLOB);
create or replace view rows as
select * from lacking union all by name select * from written;

create or replace table own as
/* The cluster's own records, which belong to no group, each `at` its place. */
/* Reads rows: all records. */
SELECT
  idx * 16777216 + (
    TRY_CAST(ordinal AS BIGINT) + 1048576
  ) * 8 AS "at",
  idx,
  grp_seq,
  log_time_ms,
  type,
  name,
  number,
  place,
  scope,
  settings,
  sizes,
  acls,
  revocations
FROM holdfast.rows
WHERE
  grp = '';

create or replace table kept_from as
/* From where on members keep a principal, and topics tell when they were created: one row, null if the level */
/* for that, the second, was never raised. */
/* Reads own: the cluster's own records. */
SELECT
  MIN(CASE WHEN type = 'LevelRaised' AND number >= 2 THEN "at" END) AS kept_from
FROM holdfast.own;

create or replace table cluster_entries as
/* The state that belongs to no group, without the dedupe table: each key is what was said of it last. */
/* Reads rows: all records; own: the cluster's own of them, which are few; kept_from: one row, from where on */
/* members keep principals, and topics tell when they were created. */
WITH told AS (
  SELECT
    "at",
    idx,
    grp_seq,
    type,
    name,
    number,
    place,
    CONCAT_WS('.', place.idx, place.ordinal) AS place_text
  FROM holdfast.own
), counters AS (
  SELECT
    ARG_MAX_NULL(name, CASE WHEN type = 'ClusterFormed' THEN "at" END) AS id,
    MAX(idx) AS version,
    ARG_MAX_NULL(grp_seq, "at") AS seq,
    ARG_MAX_NULL(number, CASE WHEN type = 'RecoveryNumberRaised' THEN "at" END) AS recovery_number,
    MAX(CASE WHEN type = 'RecoveryNumberRaised' THEN "at" END) // 16777216 AS recovered_at,
    ARG_MAX_NULL(place_text, CASE WHEN type = 'SegmentSealed' THEN "at" END) AS sealed,
    ARG_MAX_NULL(number, CASE WHEN type = 'LevelRaised' THEN "at" END) AS level,
    ARG_MAX_NULL(
      CASE WHEN name <> 'open' THEN name END,
      CASE WHEN type = 'AccessModeChanged' THEN "at" END
    ) AS access_mode,
    ARG_MAX_NULL(
      CONCAT_WS(':', place_text, place.log_time_ms, LOWER(HEX(place.digest))),
      CASE WHEN type = 'HistoryCut' THEN "at" END
    ) AS history_cut,
    MAX(CASE WHEN type = 'BackupVerified' THEN number END) AS backed_up
  FROM told
), counted AS (
  SELECT
    'cluster' AS kind,
    key,
    value
  FROM counters
  CROSS JOIN LATERAL (
    SELECT
      UNNEST([
        {'key': 'id', 'value': id},
        {'key': 'version', 'value': TRY_CAST(version AS TEXT)},
        {'key': 'seq', 'value': TRY_CAST(seq AS TEXT)},
        {'key': 'recovery number', 'value': TRY_CAST(recovery_number AS TEXT)},
        {'key': 'recovered at', 'value': TRY_CAST(recovered_at AS TEXT)},
        {'key': 'sealed', 'value': sealed},
        {'key': 'level', 'value': TRY_CAST(level AS TEXT)},
        {'key': 'access mode', 'value': access_mode},
        {'key': 'history cut', 'value': history_cut},
        {'key': 'backed up', 'value': TRY_CAST(backed_up AS TEXT)}
      ], max_depth => 2)
  ) AS v(key, value)
  WHERE
    value <> ''
), clock AS (
  SELECT
    MAX(log_time_ms) AS log_time_ms
  FROM holdfast.rows
), said AS (
  /* A setting without a value has the inherited one again; so a key whose last value is null is gone. */
  SELECT
    'setting' AS kind,
    CONCAT_WS(':', scope, it.key) AS key,
    "at",
    n,
    it.value AS value
  FROM holdfast.own
  CROSS JOIN LATERAL (
    SELECT
      n - 1 AS n,
      it
    FROM UNNEST(settings) WITH ORDINALITY AS v(it, n)
  )
  UNION ALL
  SELECT
    'acl',
    CONCAT_WS('|', it.principal, it.role, it.kind, it.name),
    "at",
    n,
    CASE WHEN it.granted THEN '' END
  FROM holdfast.own
  CROSS JOIN LATERAL (
    SELECT
      n - 1 AS n,
      it
    FROM UNNEST(acls) WITH ORDINALITY AS v(it, n)
  )
  UNION ALL
  SELECT
    'revocation',
    it.fingerprint,
    "at",
    n,
    CASE
      WHEN NOT it.revoked_ms IS NULL
      THEN CONCAT_WS('|', it.principal, it.expires_ms, it.reason, it.revoked_ms)
    END
  FROM holdfast.own
  CROSS JOIN LATERAL (
    SELECT
      n - 1 AS n,
      it
    FROM UNNEST(revocations) WITH ORDINALITY AS v(it, n)
  )
), said_last AS (
  SELECT
    kind,
    key,
    MAX({'at': "at", 'n': n, 'value': value}) AS latest
  FROM said
  GROUP BY
    kind,
    key
), sizes AS (
  SELECT
    it.name AS key,
    "at",
    n,
    it.num_partitions AS partitions,
    type = 'TopicsCreated' AS creates
  FROM holdfast.own
  CROSS JOIN LATERAL (
    SELECT
      n - 1 AS n,
      it
    FROM UNNEST(sizes) WITH ORDINALITY AS v(it, n)
  )
), topics AS (
  SELECT
    key,
    MAX({'at': "at", 'n': n, 'partitions': partitions}) AS latest,
    MAX(CASE WHEN creates THEN "at" END) AS created
  FROM sizes
  GROUP BY
    key
)
SELECT
  '' AS grp,
  kind,
  key,
  value
FROM counted
UNION ALL
SELECT
  '',
  'cluster',
  'log time',
  TRY_CAST(log_time_ms AS TEXT)
FROM clock
WHERE
  NOT log_time_ms IS NULL
UNION ALL
SELECT
  '',
  kind,
  key,
  latest.value
FROM said_last
WHERE
  NOT latest.value IS NULL
UNION ALL
/* A topic's size, and the entry that created it, if that level was in force. */
SELECT
  '',
  'topic',
  key,
  CONCAT_WS(
    ':',
    latest.partitions,
    CASE
      WHEN created > (
        SELECT
          kept_from
        FROM holdfast.kept_from
      )
      THEN created // 16777216
      WHEN NOT created IS NULL
      THEN 0
    END
  )
FROM topics
WHERE
  NOT latest.partitions IS NULL;

create or replace table requests as
/* The requests that were served, and those that a checkpoint tells of (`kept`), each `at` its place. */
/* Reads rows: all records. */
SELECT
  idx * 16777216 + (
    TRY_CAST(ordinal AS BIGINT) + 1048576
  ) * 8 AS "at",
  COALESCE(scope, grp) AS of,
  principal,
  log_time_ms,
  request,
  number,
  type = 'RequestKept' AS kept
FROM holdfast.rows
WHERE
  type IN ('RequestRecorded', 'RequestKept');

create or replace table told_bounds as
/* What bounds the dedupe table: one row. Null is a setting that nobody has set. */
/* `changed`: one of the settings was changed after the first request came. RequestsCounted tells, for a */
/* checkpoint, the next number, and the time of what is not known; the requests that it has kept bear the */
/* numbers before that. */
/* Reads requests: the requests that were served, and those of a checkpoint; own: the cluster's own records. */
WITH told AS (
  SELECT
    'request' AS what,
    "at",
    kept,
    TRY_CAST(NULL AS TEXT) AS value,
    TRY_CAST(NULL AS BIGINT) AS next_number,
    TRY_CAST(NULL AS BIGINT) AS floor_ms
  FROM holdfast.requests
  UNION ALL
  SELECT
    it.key,
    "at",
    NULL,
    it.value,
    NULL,
    NULL
  FROM holdfast.own
  CROSS JOIN UNNEST(settings) AS v(it)
  WHERE
    scope = '' AND it.key IN ('dedupe.window_ms', 'dedupe.requests_max')
  UNION ALL
  SELECT
    'counted',
    "at",
    NULL,
    NULL,
    number,
    place.log_time_ms
  FROM holdfast.own
  WHERE
    type = 'RequestsCounted'
)
SELECT
  COALESCE(
    MAX(CASE WHEN NOT what IN ('request', 'counted') THEN "at" END) > MIN(CASE WHEN what = 'request' THEN "at" END),
    FALSE
  ) AS changed,
  TRY_CAST(ARG_MAX_NULL(value, CASE WHEN what = 'dedupe.window_ms' THEN "at" END) AS BIGINT) AS window_ms,
  TRY_CAST(ARG_MAX_NULL(value, CASE WHEN what = 'dedupe.requests_max' THEN "at" END) AS BIGINT) AS most,
  COALESCE(MAX(next_number) - COUNT(CASE WHEN kept THEN 1 END), 0) AS oldest,
  COALESCE(MAX(next_number), 0) AS next_number,
  COALESCE(MAX(floor_ms), 0) AS floor_ms
FROM told;

create or replace table bounds as
select changed, coalesce(window_ms, 600000) as window_ms, coalesce(most, 50000) as most, oldest, next_number, floor_ms from told_bounds;

create or replace table numbered as
/* All requests with their numbers, in the order in which they were served; those of a checkpoint have */
/* theirs. */
/* Reads requests: the requests that were served, and those of a checkpoint; bounds: one row */
/* (requests/bounds.sql). */
SELECT
  "at",
  of,
  principal,
  log_time_ms,
  request,
  kept,
  CASE
    WHEN kept
    THEN number
    ELSE ROW_NUMBER() OVER (PARTITION BY kept ORDER BY "at" NULLS FIRST) - 1 + (
      SELECT
        next_number
      FROM holdfast.bounds
    )
  END AS number
FROM holdfast.requests;

create or replace table steps as
/* How many requests had gone before and after each came (S15). */
/* Each request that is served is numbered, and pushes out at most eight of the oldest: those that are older */
/* than twice the window, and those beyond the number that may be kept. How many are gone after the k-th is, */
/* for every j up to k, at most what was due at j, and eight for each one since; the least of these is the */
/* number, as long as the settings are the same. */
/* Reads numbered: all requests (requests/numbers.sql); bounds: one row (requests/bounds.sql). */
WITH times AS (
  /* Those of a checkpoint have come before; they grow old with the others. Each is told of twice: as it */
  /* comes, and as it is too old. */
  SELECT
    "at",
    number,
    kept,
    log_time_ms,
    log_time_ms AS time_ms,
    TRY_CAST(NULL AS INT) AS old
  FROM holdfast.numbered
  UNION ALL
  SELECT
    NULL,
    NULL,
    NULL,
    NULL,
    log_time_ms + 2 * b.window_ms + 1,
    1
  FROM holdfast.numbered
  CROSS JOIN holdfast.bounds AS b
), aged AS (
  SELECT
    "at",
    number,
    kept,
    log_time_ms,
    COUNT(old) OVER (ORDER BY time_ms NULLS FIRST) AS aged
  FROM times
), due AS (
  SELECT
    "at",
    number,
    log_time_ms,
    b.oldest,
    GREATEST(aged + b.oldest, number + 1 - b.most, b.oldest) AS due,
    number + 1 > b.most AS much,
    (
      number + 1 - b.next_number
    ) * 8 + b.oldest AS all_at_once
  FROM aged
  CROSS JOIN holdfast.bounds AS b
  WHERE
    NOT kept
), gone AS (
  SELECT
    "at",
    number,
    log_time_ms,
    oldest,
    much,
    LEAST(MIN(due - number * 8) OVER (ORDER BY "at" NULLS FIRST) + number * 8, all_at_once) AS gone
  FROM due
)
SELECT
  "at",
  number,
  log_time_ms,
  much,
  gone,
  COALESCE(LAG(gone) OVER (ORDER BY "at" NULLS FIRST), oldest) AS before
FROM gone;

create or replace table floor as
/* The time of the youngest request that had to go for want of room, or was made ahead of it: one row. */
/* Reads numbered: all requests (requests/numbers.sql); steps: what went as each came (requests/steps.sql); bounds: one */
/* row (requests/bounds.sql). */
WITH going AS (
  SELECT
    log_time_ms AS now_ms,
    number
  FROM (
    SELECT
      log_time_ms,
      before,
      gone
    FROM holdfast.steps
    WHERE
      gone > before
  ) AS steps
  CROSS JOIN UNNEST(GENERATE_SERIES(before, gone - 1)) AS v(number)
), lost AS (
  /* The first 48 bits of a UUID of version 7 are the time at which it was made; it counts up to a window */
  /* ahead. */
  SELECT
    n.log_time_ms,
    n.log_time_ms + b.window_ms AS latest_ms,
    CASE
      WHEN REGEXP_MATCHES(
        n.request.request_id,
        '^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-7[0-9a-fA-F]{3}-' || '[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}$'
      )
      THEN TRY_CAST(CONV(SUBSTRING(REPLACE(n.request.request_id, '-', ''), 1, 12), 16, 10) AS BIGINT)
      ELSE 0
    END AS made_ms
  FROM holdfast.numbered AS n
  JOIN going
    ON going.number = n.number
  CROSS JOIN holdfast.bounds AS b
  WHERE
    n.log_time_ms >= going.now_ms - 2 * b.window_ms
)
SELECT
  MAX(GREATEST(log_time_ms, LEAST(made_ms, latest_ms))) AS floor_ms
FROM lost;

create or replace table totals as
select coalesce(nullif(max(gone), 0), any_value(bounds.oldest)) as oldest,
  coalesce(max(number) + 1, any_value(bounds.next_number)) as next_number,
  greatest(any_value(bounds.floor_ms), case when bool_or(much) then any_value(floor.floor_ms) end)
    as floor_ms
from bounds cross join floor left join steps on true;

create or replace table request_entries as
/* The dedupe table, one row a request that is kept, and its counters. */
/* Reads numbered: all requests (requests/numbers.sql); totals: one row, the oldest number that is kept, the one */
/* that follows, and the time of what is not known. */
SELECT
  '' AS grp,
  'request' AS kind,
  CONCAT_WS('|', principal, of, request.request_id) AS key,
  CONCAT_WS(
    ':',
    LOWER(HEX(request.digest)),
    LOWER(HEX(request.answer)),
    log_time_ms,
    number,
    CONCAT_WS('.', "at" // 16777216, (
      "at" & 16777215
    ) // 8 - 1048576)
  ) AS value
FROM holdfast.numbered
WHERE
  number >= (
    SELECT
      oldest
    FROM holdfast.totals
  )
UNION ALL
SELECT
  '',
  'cluster',
  key,
  TRY_CAST(value AS TEXT)
FROM holdfast.totals
CROSS JOIN LATERAL (
  SELECT
    UNNEST([
      {'key': 'requests next', 'value': next_number},
      {'key': 'requests floor', 'value': floor_ms}
    ], max_depth => 2)
) AS v(key, value)
WHERE
  value <> 0;

create or replace table deleted as
/* The place of each group's last deletion, after which another life of it may have begun. */
/* holdfast.rows: records, as columns. */
SELECT
  grp AS gone,
  MAX(idx * 16777216 + (
    TRY_CAST(ordinal AS BIGINT) + 1048576
  ) * 8) AS ended
FROM holdfast.rows
WHERE
  type = 'GroupDeleted'
GROUP BY
  grp;

create or replace view living as
/* The records of each group's present life: those after its last deletion. */
/* holdfast.rows: records, as columns; holdfast.deleted: what groups/deletions.sql finds in them. Each is `at` a place, one */
/* number that grows with the log (statements.py). Rows that a conversion is told by (conversion/rows.sql) */
/* have `carried`, and the `token` that a member brings from before. */
WITH placed AS (
  SELECT
    *
    EXCLUDE (payload, chain),
    idx * 16777216 + (
      TRY_CAST(ordinal AS BIGINT) + 1048576
    ) * 8 AS "at",
    FALSE AS carried,
    TRY_CAST(NULL AS BIGINT) AS token
  FROM holdfast.rows
  WHERE
    grp <> ''
)
SELECT
  placed.*
FROM placed
LEFT JOIN holdfast.deleted AS gone
  ON placed.grp = gone.gone
WHERE
  gone.ended IS NULL OR "at" > gone.ended;

create or replace table told as
select * from living where type not in ('OffsetsCommitted', 'OffsetsDeleted', 'RequestRecorded');

create or replace table changing as
select * from told where grp in (select grp from told where type = 'GroupConverted');

create or replace table phases as
/* The records of groups that changed their type, each with the phase that it is of, and whether that is */
/* the present one. A conversion ends one phase and belongs to the next, which it begins: the number of a */
/* phase is the number of conversions up to it. */
/* living: the records of these groups. */
WITH numbered AS (
  SELECT
    grp,
    "at",
    type,
    carried,
    token,
    member_id,
    old_member_id,
    instance_id,
    members,
    removed,
    group_type,
    generation,
    grants,
    joined,
    classic,
    command,
    topics,
    regex,
    epoch,
    targets,
    granted,
    asked_back,
    freed,
    waiting,
    assignor,
    late,
    installed_by,
    converted,
    TRY_CAST(COUNT(CASE WHEN type = 'GroupConverted' THEN 1 END) OVER (PARTITION BY grp ORDER BY "at" NULLS FIRST) AS INT) AS phase,
    TRY_CAST(COUNT(CASE WHEN type = 'GroupConverted' THEN 1 END) OVER (PARTITION BY grp) AS INT) AS last_phase
  FROM holdfast.changing
)
SELECT
  *,
  phase = last_phase AS present
FROM numbered;

create or replace table phase_members as
/* The members of each conversion, and what is known of each from before, since a conversion does not tell */
/* it: the instance, and whether the process stopped. */
/* phases: the records of groups that changed their type (conversion/phases.sql). */
WITH named AS (
  SELECT
    grp,
    phase,
    present,
    "at",
    type,
    group_type,
    generation,
    instance_id,
    one.member_id AS member_id,
    one.topics AS topics,
    one.partitions AS partitions,
    COALESCE(joined, FALSE) OR type IN ('MemberJoined', 'StaticMemberReplaced') AS came
  FROM holdfast.phases
  CROSS JOIN UNNEST(CASE
    WHEN type = 'GroupConverted'
    THEN converted
    ELSE [{'member_id': member_id, 'topics': NULL, 'partitions': NULL}]
  END) AS v(one)
  WHERE
    joined
    OR type IN ('MemberJoined', 'StaticMemberReplaced')
    OR type IN ('InstanceReleased', 'MemberAdvanced', 'GroupConverted')
), known AS (
  SELECT
    *,
    LAST_VALUE(CASE WHEN came THEN {'instance_id': instance_id} END IGNORE NULLS) OVER (PARTITION BY grp, member_id ORDER BY "at" NULLS FIRST) AS taken,
    LAST_VALUE(CASE WHEN type <> 'GroupConverted' THEN type END IGNORE NULLS) OVER (PARTITION BY grp, member_id ORDER BY "at" NULLS FIRST) AS last_said
  FROM named
)
/* A process has stopped if nothing was said of its id since it released the instance. */
SELECT
  grp,
  phase,
  present,
  "at",
  group_type,
  generation,
  member_id,
  taken.instance_id AS instance_id,
  COALESCE('i:' || taken.instance_id, 'm:' || member_id) AS seat,
  COALESCE(last_said = 'InstanceReleased', FALSE) AS released,
  topics,
  partitions,
  TRY_CAST(NULL AS BIGINT) AS token
FROM known
WHERE
  type = 'GroupConverted';

create or replace table begun as
/* The records of phases, with rows that tell what each phase began with, as if that had happened in it. */
/* phases: the records of groups that changed their type (conversion/phases.sql); members: those of each */
/* conversion (conversion/members.sql), with the token that each brings, if that is known. */
WITH conversions AS (
  SELECT
    grp,
    phase,
    present,
    "at",
    group_type,
    generation,
    converted
  FROM holdfast.phases
  WHERE
    type = 'GroupConverted'
), written AS (
  /* The bytes of a `ConsumerProtocolAssignment` (group.proto), in hexadecimal, as protobuf writes them: each */
  /* classic member gets one. A number, as the length of a field, is written in bytes of seven bits; all but */
  /* the last have the bit 128, too. A field that is empty is left out. First, what is in each topic's fields. */
  SELECT
    grp,
    phase,
    present,
    "at",
    group_type,
    generation,
    converted,
    LIST_TRANSFORM(
      converted,
      LAMBDA member : {'member_id': member.member_id, 'topics': LIST_TRANSFORM(
        member.partitions,
        LAMBDA part : [
          {'tag': '0A', 'content': HEX(ENCODE(part.topic))},
          {'tag': '12', 'content': ARRAY_TO_STRING(
            LIST_TRANSFORM(
              part.partitions,
              LAMBDA number : ARRAY_TO_STRING(
                LIST_TRANSFORM(
                  LIST_FILTER([1, 128, 16384, 2097152, 268435456], LAMBDA p : p = 1 OR number >= p),
                  LAMBDA p : LPAD(HEX(number // p % 128 + CASE WHEN number // p >= 128 THEN 128 ELSE 0 END), 2, '0')
                ),
                ''
              )
            ),
            ''
          )}
        ]
      )}
    ) AS members
  FROM conversions
), topical AS (
  /* Each topic: its fields, with their lengths. */
  SELECT
    grp,
    phase,
    present,
    "at",
    group_type,
    generation,
    converted,
    LIST_TRANSFORM(
      members,
      LAMBDA member : {'member_id': member.member_id, 'topics': LIST_TRANSFORM(
        member.topics,
        LAMBDA fields : ARRAY_TO_STRING(
          LIST_TRANSFORM(
            LIST_FILTER(fields, LAMBDA field : field.content <> ''),
            LAMBDA field : field.tag || ARRAY_TO_STRING(
              LIST_TRANSFORM(
                LIST_FILTER(
                  [1, 128, 16384, 2097152, 268435456],
                  LAMBDA p : p = 1 OR LENGTH(field.content) // 2 >= p
                ),
                LAMBDA p : LPAD(
                  HEX(
                    LENGTH(field.content) // 2 // p % 128 + CASE WHEN LENGTH(field.content) // 2 // p >= 128 THEN 128 ELSE 0 END
                  ),
                  2,
                  '0'
                )
              ),
              ''
            ) || field.content
          ),
          ''
        )
      )}
    ) AS members
  FROM written
), assigned AS (
  /* Each assignment: its topics, with their lengths. */
  SELECT
    grp,
    phase,
    present,
    "at",
    group_type,
    generation,
    converted,
    LIST_TRANSFORM(
      members,
      LAMBDA member : {'member_id': member.member_id, 'assignment': UNHEX(
        ARRAY_TO_STRING(
          LIST_TRANSFORM(
            LIST_FILTER(member.topics, LAMBDA topic : topic <> ''),
            LAMBDA topic : '0A' || ARRAY_TO_STRING(
              LIST_TRANSFORM(
                LIST_FILTER([1, 128, 16384, 2097152, 268435456], LAMBDA p : p = 1 OR LENGTH(topic) // 2 >= p),
                LAMBDA p : LPAD(
                  HEX(
                    LENGTH(topic) // 2 // p % 128 + CASE WHEN LENGTH(topic) // 2 // p >= 128 THEN 128 ELSE 0 END
                  ),
                  2,
                  '0'
                )
              ),
              ''
            ) || topic
          ),
          ''
        )
      )}
    ) AS grants
  FROM topical
), begun AS (
  /* The order of the rows that a member is told by: that it came, and got what it owns; and stopped, if it */
  /* had stopped. */
  SELECT
    *,
    TRY_CAST([] AS STRUCT(topic TEXT, partitions INT[])[]) AS nothing
  FROM holdfast.phase_members
  CROSS JOIN UNNEST([1, 2, 3]) AS v(nth)
)
SELECT
  grp,
  phase,
  present,
  "at",
  type,
  carried,
  token,
  group_type,
  generation,
  grants,
  member_id,
  old_member_id,
  instance_id,
  members,
  removed,
  joined,
  classic,
  command,
  topics,
  regex,
  epoch,
  targets,
  granted,
  asked_back,
  freed,
  waiting,
  assignor,
  late,
  installed_by
FROM holdfast.phases
UNION ALL
/* The generation, or the epochs, and what everybody has, or is to have. */
SELECT
  grp,
  phase,
  present,
  "at" + 2 + nth,
  told_as,
  TRUE,
  NULL,
  NULL,
  generation,
  grants,
  NULL,
  NULL,
  NULL,
  NULL,
  NULL,
  NULL,
  NULL,
  NULL,
  NULL,
  NULL,
  generation,
  LIST_TRANSFORM(
    converted,
    LAMBDA member : {'member_id': member.member_id, 'partitions': member.partitions, 'version': 0, 'metadata': UNHEX('')}
  ),
  NULL,
  NULL,
  NULL,
  NULL,
  NULL,
  NULL,
  NULL
FROM assigned
CROSS JOIN LATERAL (
  SELECT
    nth - 1 AS nth,
    told_as
  FROM UNNEST(CASE
    WHEN group_type = 'consumer'
    THEN ['EpochRaised', 'TargetStored']
    ELSE ['GenerationStarted', 'AssignmentStored']
  END) WITH ORDINALITY AS v(told_as, nth)
)
UNION ALL
/* A member that comes from the classic protocol still speaks it; its epoch before is its epoch. */
SELECT
  grp,
  phase,
  present,
  "at" + nth,
  told_as,
  TRUE,
  token,
  NULL,
  NULL,
  NULL,
  member_id,
  NULL,
  instance_id,
  NULL,
  NULL,
  nth = 1,
  TRUE,
  NULL,
  topics,
  '',
  generation,
  NULL,
  CASE WHEN nth = 2 THEN partitions ELSE nothing END,
  nothing,
  nothing,
  FALSE,
  NULL,
  NULL,
  NULL
FROM (
  SELECT
    *,
    CASE
      WHEN nth = 1
      THEN CASE WHEN group_type = 'consumer' THEN 'MemberSubscribed' ELSE 'MemberJoined' END
      WHEN nth = 3 AND released
      THEN 'InstanceReleased'
      WHEN group_type = 'consumer'
      THEN 'MemberAdvanced'
    END AS told_as
  FROM begun
)
WHERE
  NOT told_as IS NULL;

create or replace table by_phase as
/* The rows of all phases, each phase as a group of its own: its `grp` is the pair of that and the phase. */
/* rows: the records of phases and what these began with (conversion/rows.sql). */
SELECT
  {'grp': grp, 'phase': phase} AS grp,
  *
  EXCLUDE (grp, phase, present)
FROM holdfast.begun;

create or replace table phases_beating as
select * from by_phase where grp in (select grp from by_phase where group_type = 'consumer');

create or replace table phases_classic as
select * from by_phase where grp not in (select grp from by_phase where group_type = 'consumer');

create or replace table phase_said as
/* What each record of a group of the heartbeat protocol says of each member, and in which seat that */
/* member is. A seat is what a swap passes on: that of the instance of a static member, that of the id of */
/* a dynamic one. A member id is in the seat that it took last: by joining, or by a swap. */
/* living: the records of these groups. */
WITH each AS (
  SELECT
    grp,
    "at",
    type,
    old_member_id,
    instance_id,
    joined,
    command,
    carried,
    token,
    epoch,
    topics,
    regex,
    classic,
    waiting,
    granted,
    asked_back,
    freed,
    one.member_id AS member_id,
    one.target AS target
  FROM holdfast.phases_beating
  CROSS JOIN UNNEST(CASE
    WHEN type IN ('MembersLeft', 'MembersRemoved')
    THEN LIST_TRANSFORM(members, LAMBDA id : {'member_id': id, 'target': NULL})
    WHEN type = 'TargetStored'
    THEN LIST_TRANSFORM(
      targets,
      LAMBDA aim : {'member_id': aim.member_id, 'target': {'partitions': aim.partitions, 'version': aim.version, 'metadata': aim.metadata}}
    )
    ELSE [{'member_id': member_id, 'target': NULL}]
  END) AS v(one)
  WHERE
    type IN (
      'MembersLeft',
      'MembersRemoved',
      'TargetStored',
      'MemberSubscribed',
      'MemberExpired'
    )
    OR type IN ('StaticMemberReplaced', 'InstanceReleased', 'MemberAdvanced')
), seated AS (
  SELECT
    *,
    COALESCE(joined, FALSE) OR type = 'StaticMemberReplaced' AS came,
    LAST_VALUE(
      CASE
        WHEN joined OR type = 'StaticMemberReplaced'
        THEN {'instance_id': instance_id}
      END
     IGNORE NULLS) OVER (PARTITION BY grp, member_id ORDER BY "at" NULLS FIRST) AS taken
  FROM each
)
SELECT
  grp,
  "at",
  type,
  member_id,
  old_member_id,
  instance_id,
  joined,
  came,
  command,
  carried,
  token,
  epoch,
  topics,
  regex,
  classic,
  waiting,
  granted,
  asked_back,
  freed,
  target,
  COALESCE('i:' || taken.instance_id, 'm:' || member_id) AS seat
FROM seated;

create or replace table phase_present as
/* What was said of members that are there, from their joining on: a seat begins when a member joins, and */
/* ends when one departs. */
/* said: what records say of members (consumer/said.sql). */
WITH placed AS (
  SELECT
    *,
    MAX(CASE WHEN joined THEN "at" END) OVER (PARTITION BY grp, seat) AS begun,
    MAX(
      CASE WHEN type IN ('MembersLeft', 'MembersRemoved', 'MemberExpired') THEN "at" END
    ) OVER (PARTITION BY grp, seat) AS ended
  FROM holdfast.phase_said
), stepped AS (
  /* A step sets the epoch of a member: to -2, if it releases its instance. `speaks`: who says by this */
  /* which protocol it speaks, whether it is the classic one (K-Q5, K-Q7); a swap by a classic join is of */
  /* a process that speaks that. */
  SELECT
    grp,
    seat,
    "at",
    type,
    member_id,
    instance_id,
    joined,
    came,
    carried,
    token,
    epoch,
    topics,
    regex,
    waiting,
    granted,
    asked_back,
    freed,
    target,
    CASE
      WHEN came
      THEN {'type': type, 'now': 0}
      WHEN type = 'InstanceReleased'
      THEN {'type': type, 'now': -2}
      WHEN type = 'MemberAdvanced'
      THEN {'type': type, 'now': epoch}
    END AS step,
    CASE
      WHEN type = 'MemberSubscribed'
      THEN COALESCE(classic, FALSE)
      WHEN type = 'StaticMemberReplaced'
      THEN COALESCE(command = 'JoinGroup', FALSE)
    END AS speaks
  FROM placed
  WHERE
    "at" >= begun AND (
      ended IS NULL OR ended < begun
    )
), earlier AS (
  /* The step before each record, and what the member spoke before. */
  SELECT
    *,
    LAST_VALUE(step IGNORE NULLS) OVER (
      PARTITION BY grp, seat
      ORDER BY "at" NULLS FIRST
      rows BETWEEN UNBOUNDED preceding AND 1 preceding
    ) AS before,
    LAST_VALUE(speaks IGNORE NULLS) OVER (
      PARTITION BY grp, seat
      ORDER BY "at" NULLS FIRST
      rows BETWEEN UNBOUNDED preceding AND 1 preceding
    ) AS spoke
  FROM stepped
), renewing AS (
  /* What grants all that a seat owns anew, beside what it grants (S12, S13). That is a swap whose holder */
  /* had not released the instance: both processes may run. A member of the classic protocol is told one */
  /* token, so all gets that of the newest grant; and as a member begins to speak that protocol. */
  SELECT
    *,
    CASE
      WHEN carried
      THEN NULL
      WHEN type = 'StaticMemberReplaced'
      AND (
        speaks OR NOT COALESCE(before.type = 'InstanceReleased', FALSE)
      )
      THEN "at"
      WHEN type = 'MemberSubscribed'
      AND NOT COALESCE(joined, FALSE)
      AND speaks
      AND NOT COALESCE(spoke, FALSE)
      THEN "at"
      WHEN type = 'MemberAdvanced' AND ARRAY_LENGTH(granted) > 0 AND spoke
      THEN "at"
    END AS renews
  FROM earlier
)
SELECT
  grp,
  seat,
  "at",
  type,
  member_id,
  instance_id,
  came,
  carried,
  token,
  epoch,
  topics,
  regex,
  waiting,
  granted,
  asked_back,
  freed,
  target,
  step,
  before.now AS epoch_before,
  speaks,
  renews,
  LAST_VALUE(renews IGNORE NULLS) OVER (
    PARTITION BY grp, seat
    ORDER BY "at" NULLS FIRST
    rows BETWEEN UNBOUNDED preceding AND 1 preceding
  ) AS renewed
FROM renewing;

create or replace table phase_seats as
/* The member in each seat that is taken: what it wants, where it is, and what it is to own; each is what */
/* was said of the seat last. */
/* present: what records say of members that are there (consumer/present.sql). */
SELECT
  grp,
  seat,
  ARG_MAX_NULL(member_id, CASE WHEN came THEN "at" END) AS member_id,
  ARG_MAX_NULL(instance_id, CASE WHEN came THEN "at" END) AS instance_id,
  ARG_MAX_NULL(
    CONCAT_WS('|', COALESCE(ARRAY_TO_STRING(topics, ','), ''), regex),
    CASE WHEN type = 'MemberSubscribed' THEN "at" END
  ) AS wants,
  ARG_MAX_NULL(
    CONCAT_WS(
      ':',
      step.now,
      CASE WHEN came THEN 0 ELSE epoch_before END,
      CASE WHEN waiting THEN 'waiting' ELSE '' END
    ),
    CASE WHEN NOT step IS NULL THEN "at" END
  ) AS progress, /* A member's epoch, the one before (K-M11), and whether it waits for others (K-O8). */
  ARG_MAX_NULL(target, CASE WHEN type = 'TargetStored' THEN "at" END) AS target,
  MAX(CASE WHEN type = 'InstanceReleased' THEN "at" END) AS released,
  MAX(CASE WHEN type = 'StaticMemberReplaced' THEN "at" END) AS swapped,
  ARG_MAX_NULL(speaks, CASE WHEN NOT speaks IS NULL THEN "at" END) AS speaks,
  MAX(renews) AS last_renewed
FROM holdfast.phase_present
GROUP BY
  grp,
  seat;

create or replace table phase_held as
/* Who owns each partition, by what grant: in which seat, since which epoch and entry (S13, K-O16). What a */
/* group brings from another type keeps the token that it had there: no value of `granted`, if that is not */
/* known. */
/* present: what records say of members that are there (consumer/present.sql); seats: the member in each */
/* seat (consumer/seats.sql). */
WITH moves AS (
  /* The partitions of each step; of one that is in two lists, what changes it last has the greatest `nth`: */
  /* what comes back is granted last. */
  SELECT
    grp,
    seat,
    "at",
    nth,
    how,
    renewed,
    epoch,
    part.topic AS topic,
    partition,
    CASE WHEN carried THEN token ELSE "at" // 16777216 END AS token
  FROM holdfast.phase_present
  CROSS JOIN LATERAL (
    SELECT
      UNNEST([
        {'nth': 0, 'how': 'freed', 'parts': freed},
        {'nth': 0, 'how': 'asked_back', 'parts': asked_back},
        {'nth': 1, 'how': 'granted', 'parts': granted}
      ], max_depth => 2)
  ) AS l(nth, how, parts)
  CROSS JOIN UNNEST(parts) AS t(part)
  CROSS JOIN UNNEST(part.partitions) AS n(partition)
  WHERE
    type = 'MemberAdvanced'
), moved AS (
  /* What last happened to each partition in a seat, and when it was last granted. */
  SELECT
    grp,
    seat,
    topic,
    partition,
    MAX({'at': "at", 'nth': nth, 'how': how, 'renewed': renewed}) AS newest,
    MAX(CASE WHEN how = 'granted' THEN {'at': "at", 'epoch': epoch, 'token': token} END) AS given
  FROM moves
  GROUP BY
    grp,
    seat,
    topic,
    partition
), held AS (
  /* A release frees what its member was asked to give up (K-N23). */
  SELECT
    m.grp,
    m.seat,
    s.member_id,
    m.topic,
    m.partition,
    m.newest,
    m.given,
    s.released,
    s.last_renewed,
    m.newest.how = 'asked_back' AS asked
  FROM moved AS m
  JOIN holdfast.phase_seats AS s
    ON s.grp = m.grp AND s.seat = m.seat
  WHERE
    m.newest.how <> 'freed'
    AND NOT COALESCE(
      m.newest.how = 'asked_back' AND GREATEST(s.released, s.swapped) > m.newest."at",
      FALSE
    )
)
/* A release lets its successor commit whatever epoch it knows (K-J41). What is asked back is not granted */
/* anew with the rest. */
SELECT
  grp,
  seat,
  member_id,
  topic,
  partition,
  CASE WHEN released > given."at" THEN 0 ELSE given.epoch END AS epoch,
  GREATEST(
    given.token,
    (
      CASE WHEN asked THEN newest.renewed ELSE last_renewed END
    ) // 16777216
  ) AS granted,
  CASE WHEN asked THEN 'revoking' ELSE '' END AS how
FROM held;

create or replace table phase_grants as
/* Who is in each classic group, what each member holds, and the index of the entry that granted it. */
/* An assignment writes every member's key; a join phase that opens before the assignment arrives */
/* clears them (Kafka's rule for CompletingRebalance); a swap keeps the key under a new index, if the */
/* instance had any. What a group brings from another type keeps the token that it had there: no */
/* value of `granted`, if that is not known. */
/* holdfast.phases_classic: the records of these groups. `identity` stays the same in a swap: the instance of a */
/* static member, the id of a dynamic one. */
WITH told AS (
  SELECT
    grp,
    "at",
    type,
    token,
    instance_id,
    who,
    comes,
    COALESCE('i:' || instance_id, 'm:' || who) AS identity
  FROM holdfast.phases_classic
  CROSS JOIN LATERAL (
    SELECT
      UNNEST(CASE
        WHEN type = 'MemberJoined'
        THEN [{'who': member_id, 'comes': TRUE}]
        WHEN type = 'StaticMemberReplaced'
        THEN [{'who': old_member_id, 'comes': FALSE}, {'who': member_id, 'comes': TRUE}]
        WHEN type IN ('MemberExpired', 'MemberRefused')
        THEN [{'who': member_id, 'comes': FALSE}]
        WHEN type IN ('MembersLeft', 'MembersRemoved')
        THEN LIST_TRANSFORM(members, LAMBDA member : {'who': member, 'comes': FALSE})
        WHEN NOT removed IS NULL
        THEN LIST_TRANSFORM(removed, LAMBDA member : {'who': member, 'comes': FALSE})
      END, max_depth => 2)
  ) AS each(who, comes)
), last_told AS (
  SELECT
    grp,
    who,
    ARG_MAX_NULL({'comes': comes, 'instance_id': instance_id, 'identity': identity}, "at") AS last
  FROM told
  GROUP BY
    grp,
    who
), members AS (
  /* Ids that came after they last departed. */
  SELECT
    grp,
    who AS member_id,
    last.instance_id,
    last.identity
  FROM last_told
  WHERE
    last.comes
), since AS (
  /* When somebody last joined with each identity, and when it was last swapped. */
  SELECT
    grp,
    identity,
    MAX(CASE WHEN type = 'MemberJoined' THEN "at" END) AS joined,
    ARG_MAX_NULL(token, CASE WHEN type = 'MemberJoined' THEN "at" END) AS token,
    MAX(CASE WHEN type = 'StaticMemberReplaced' THEN "at" END) AS swapped
  FROM told
  WHERE
    comes
  GROUP BY
    grp,
    identity
), phases AS (
  SELECT
    grp,
    "at",
    type,
    grants,
    carried,
    LAG(type) OVER (PARTITION BY grp ORDER BY "at" NULLS FIRST) AS before
  FROM holdfast.phases_classic
  WHERE
    type IN ('RebalanceStarted', 'GenerationStarted', 'AssignmentStored', 'GroupEmptied')
), given AS (
  SELECT
    grp,
    MAX(
      CASE WHEN type = 'RebalanceStarted' AND before = 'GenerationStarted' THEN "at" END
    ) AS wiped,
    MAX(CASE WHEN type = 'AssignmentStored' THEN "at" END) AS stored,
    ARG_MAX_NULL(grants, CASE WHEN type = 'AssignmentStored' THEN "at" END) AS grants,
    ARG_MAX_NULL(carried, CASE WHEN type = 'AssignmentStored' THEN "at" END) AS carried
  FROM phases
  GROUP BY
    grp
), names AS (
  SELECT DISTINCT
    grp,
    who,
    identity
  FROM told
  WHERE
    comes
), assigned AS (
  /* What the last assignment has for each identity. */
  SELECT
    each.grp,
    identity,
    MIN(LOWER(HEX(each.assignment))) AS assignment
  FROM (
    SELECT
      grp,
      one.member_id,
      one.assignment
    FROM given
    CROSS JOIN UNNEST(grants) AS g(one)
  ) AS each
  JOIN names
    ON names.grp = each.grp AND names.who = each.member_id
  GROUP BY
    each.grp,
    identity
), known AS (
  SELECT
    members.grp,
    members.identity,
    member_id,
    instance_id,
    assignment,
    wiped,
    stored,
    token,
    carried,
    COALESCE(stored > joined, FALSE) AS counts,
    CASE WHEN swapped > joined THEN swapped // 16777216 END AS swapped
  FROM members
  JOIN since
    ON since.grp = members.grp AND since.identity = members.identity
  LEFT JOIN given
    ON given.grp = members.grp
  LEFT JOIN assigned
    ON assigned.grp = members.grp AND assigned.identity = members.identity
), judged AS (
  SELECT
    *,
    counts AND COALESCE(wiped < stored, TRUE) AS kept
  FROM known
)
SELECT
  grp,
  identity,
  member_id,
  instance_id,
  CASE
    WHEN counts
    THEN GREATEST(CASE WHEN carried THEN token ELSE stored // 16777216 END, swapped)
    ELSE 0
  END AS granted,
  CASE WHEN kept THEN COALESCE(assignment, '') ELSE '' END AS held,
  CASE WHEN counts AND NOT kept THEN assignment END AS abandoned
FROM judged;

create or replace table phase_tokens as
/* The members of each conversion, with the token that each brings into the phase (S13). */
/* members: those of each conversion (conversion/members.sql); held: who owns what in phases of the heartbeat */
/* protocol (consumer/holdings.sql); granted: what members of classic phases hold. The groups of these two are */
/* pairs of `grp` and `phase`. */
WITH ends AS (
  SELECT
    grp,
    seat,
    MAX(granted) AS granted,
    TRUE AS holds
  FROM holdfast.phase_held
  GROUP BY
    grp,
    seat
  UNION ALL
  SELECT
    grp,
    identity,
    granted,
    FALSE
  FROM holdfast.phase_grants
), told AS (
  /* What the phase before has granted tells it. Who owned nothing there gets all anew as it becomes a classic */
  /* member. */
  SELECT
    m.*,
    CASE
      WHEN m.group_type <> 'consumer' AND NOT COALESCE(e.holds, FALSE)
      THEN m."at" // 16777216
      ELSE e.granted
    END AS told
  FROM holdfast.phase_members AS m
  LEFT JOIN (
    SELECT
      grp.grp AS grp,
      grp.phase + 1 AS phase,
      seat,
      granted,
      holds
    FROM ends
  ) AS e
    ON e.grp = m.grp AND e.phase = m.phase AND e.seat = m.seat
)
/* If that granted nothing, the member still has the token that it brought into it. */
SELECT
  grp,
  phase,
  present,
  "at",
  group_type,
  generation,
  member_id,
  instance_id,
  seat,
  released,
  topics,
  partitions,
  LAST_VALUE(told IGNORE NULLS) OVER (PARTITION BY grp, seat ORDER BY phase NULLS FIRST) AS token
FROM told;

create or replace table known as
/* The records of phases, with rows that tell what each phase began with, as if that had happened in it. */
/* phases: the records of groups that changed their type (conversion/phases.sql); members: those of each */
/* conversion (conversion/members.sql), with the token that each brings, if that is known. */
WITH conversions AS (
  SELECT
    grp,
    phase,
    present,
    "at",
    group_type,
    generation,
    converted
  FROM holdfast.phases
  WHERE
    type = 'GroupConverted'
), written AS (
  /* The bytes of a `ConsumerProtocolAssignment` (group.proto), in hexadecimal, as protobuf writes them: each */
  /* classic member gets one. A number, as the length of a field, is written in bytes of seven bits; all but */
  /* the last have the bit 128, too. A field that is empty is left out. First, what is in each topic's fields. */
  SELECT
    grp,
    phase,
    present,
    "at",
    group_type,
    generation,
    converted,
    LIST_TRANSFORM(
      converted,
      LAMBDA member : {'member_id': member.member_id, 'topics': LIST_TRANSFORM(
        member.partitions,
        LAMBDA part : [
          {'tag': '0A', 'content': HEX(ENCODE(part.topic))},
          {'tag': '12', 'content': ARRAY_TO_STRING(
            LIST_TRANSFORM(
              part.partitions,
              LAMBDA number : ARRAY_TO_STRING(
                LIST_TRANSFORM(
                  LIST_FILTER([1, 128, 16384, 2097152, 268435456], LAMBDA p : p = 1 OR number >= p),
                  LAMBDA p : LPAD(HEX(number // p % 128 + CASE WHEN number // p >= 128 THEN 128 ELSE 0 END), 2, '0')
                ),
                ''
              )
            ),
            ''
          )}
        ]
      )}
    ) AS members
  FROM conversions
), topical AS (
  /* Each topic: its fields, with their lengths. */
  SELECT
    grp,
    phase,
    present,
    "at",
    group_type,
    generation,
    converted,
    LIST_TRANSFORM(
      members,
      LAMBDA member : {'member_id': member.member_id, 'topics': LIST_TRANSFORM(
        member.topics,
        LAMBDA fields : ARRAY_TO_STRING(
          LIST_TRANSFORM(
            LIST_FILTER(fields, LAMBDA field : field.content <> ''),
            LAMBDA field : field.tag || ARRAY_TO_STRING(
              LIST_TRANSFORM(
                LIST_FILTER(
                  [1, 128, 16384, 2097152, 268435456],
                  LAMBDA p : p = 1 OR LENGTH(field.content) // 2 >= p
                ),
                LAMBDA p : LPAD(
                  HEX(
                    LENGTH(field.content) // 2 // p % 128 + CASE WHEN LENGTH(field.content) // 2 // p >= 128 THEN 128 ELSE 0 END
                  ),
                  2,
                  '0'
                )
              ),
              ''
            ) || field.content
          ),
          ''
        )
      )}
    ) AS members
  FROM written
), assigned AS (
  /* Each assignment: its topics, with their lengths. */
  SELECT
    grp,
    phase,
    present,
    "at",
    group_type,
    generation,
    converted,
    LIST_TRANSFORM(
      members,
      LAMBDA member : {'member_id': member.member_id, 'assignment': UNHEX(
        ARRAY_TO_STRING(
          LIST_TRANSFORM(
            LIST_FILTER(member.topics, LAMBDA topic : topic <> ''),
            LAMBDA topic : '0A' || ARRAY_TO_STRING(
              LIST_TRANSFORM(
                LIST_FILTER([1, 128, 16384, 2097152, 268435456], LAMBDA p : p = 1 OR LENGTH(topic) // 2 >= p),
                LAMBDA p : LPAD(
                  HEX(
                    LENGTH(topic) // 2 // p % 128 + CASE WHEN LENGTH(topic) // 2 // p >= 128 THEN 128 ELSE 0 END
                  ),
                  2,
                  '0'
                )
              ),
              ''
            ) || topic
          ),
          ''
        )
      )}
    ) AS grants
  FROM topical
), begun AS (
  /* The order of the rows that a member is told by: that it came, and got what it owns; and stopped, if it */
  /* had stopped. */
  SELECT
    *,
    TRY_CAST([] AS STRUCT(topic TEXT, partitions INT[])[]) AS nothing
  FROM holdfast.phase_tokens
  CROSS JOIN UNNEST([1, 2, 3]) AS v(nth)
)
SELECT
  grp,
  phase,
  present,
  "at",
  type,
  carried,
  token,
  group_type,
  generation,
  grants,
  member_id,
  old_member_id,
  instance_id,
  members,
  removed,
  joined,
  classic,
  command,
  topics,
  regex,
  epoch,
  targets,
  granted,
  asked_back,
  freed,
  waiting,
  assignor,
  late,
  installed_by
FROM holdfast.phases
UNION ALL
/* The generation, or the epochs, and what everybody has, or is to have. */
SELECT
  grp,
  phase,
  present,
  "at" + 2 + nth,
  told_as,
  TRUE,
  NULL,
  NULL,
  generation,
  grants,
  NULL,
  NULL,
  NULL,
  NULL,
  NULL,
  NULL,
  NULL,
  NULL,
  NULL,
  NULL,
  generation,
  LIST_TRANSFORM(
    converted,
    LAMBDA member : {'member_id': member.member_id, 'partitions': member.partitions, 'version': 0, 'metadata': UNHEX('')}
  ),
  NULL,
  NULL,
  NULL,
  NULL,
  NULL,
  NULL,
  NULL
FROM assigned
CROSS JOIN LATERAL (
  SELECT
    nth - 1 AS nth,
    told_as
  FROM UNNEST(CASE
    WHEN group_type = 'consumer'
    THEN ['EpochRaised', 'TargetStored']
    ELSE ['GenerationStarted', 'AssignmentStored']
  END) WITH ORDINALITY AS v(told_as, nth)
)
UNION ALL
/* A member that comes from the classic protocol still speaks it; its epoch before is its epoch. */
SELECT
  grp,
  phase,
  present,
  "at" + nth,
  told_as,
  TRUE,
  token,
  NULL,
  NULL,
  NULL,
  member_id,
  NULL,
  instance_id,
  NULL,
  NULL,
  nth = 1,
  TRUE,
  NULL,
  topics,
  '',
  generation,
  NULL,
  CASE WHEN nth = 2 THEN partitions ELSE nothing END,
  nothing,
  nothing,
  FALSE,
  NULL,
  NULL,
  NULL
FROM (
  SELECT
    *,
    CASE
      WHEN nth = 1
      THEN CASE WHEN group_type = 'consumer' THEN 'MemberSubscribed' ELSE 'MemberJoined' END
      WHEN nth = 3 AND released
      THEN 'InstanceReleased'
      WHEN group_type = 'consumer'
      THEN 'MemberAdvanced'
    END AS told_as
  FROM begun
)
WHERE
  NOT told_as IS NULL;

create or replace table present_phase as
/* The rows of the present phase of each group, as of a group that was never of another type. */
/* rows: the records of phases and what these began with (conversion/rows.sql). */
SELECT
  *
  EXCLUDE (phase, present)
FROM holdfast.known
WHERE
  present;

create or replace table typed as
select * from told where grp not in (select grp from changing) union all by name select * from present_phase;

create or replace table beating as
select * from typed where grp in (select grp from typed where group_type = 'consumer');

create or replace table classic as
select * from typed where grp not in (select grp from typed where group_type = 'consumer');

create or replace table group_said as
/* What each record of a group of the heartbeat protocol says of each member, and in which seat that */
/* member is. A seat is what a swap passes on: that of the instance of a static member, that of the id of */
/* a dynamic one. A member id is in the seat that it took last: by joining, or by a swap. */
/* living: the records of these groups. */
WITH each AS (
  SELECT
    grp,
    "at",
    type,
    old_member_id,
    instance_id,
    joined,
    command,
    carried,
    token,
    epoch,
    topics,
    regex,
    classic,
    waiting,
    granted,
    asked_back,
    freed,
    one.member_id AS member_id,
    one.target AS target
  FROM holdfast.beating
  CROSS JOIN UNNEST(CASE
    WHEN type IN ('MembersLeft', 'MembersRemoved')
    THEN LIST_TRANSFORM(members, LAMBDA id : {'member_id': id, 'target': NULL})
    WHEN type = 'TargetStored'
    THEN LIST_TRANSFORM(
      targets,
      LAMBDA aim : {'member_id': aim.member_id, 'target': {'partitions': aim.partitions, 'version': aim.version, 'metadata': aim.metadata}}
    )
    ELSE [{'member_id': member_id, 'target': NULL}]
  END) AS v(one)
  WHERE
    type IN (
      'MembersLeft',
      'MembersRemoved',
      'TargetStored',
      'MemberSubscribed',
      'MemberExpired'
    )
    OR type IN ('StaticMemberReplaced', 'InstanceReleased', 'MemberAdvanced')
), seated AS (
  SELECT
    *,
    COALESCE(joined, FALSE) OR type = 'StaticMemberReplaced' AS came,
    LAST_VALUE(
      CASE
        WHEN joined OR type = 'StaticMemberReplaced'
        THEN {'instance_id': instance_id}
      END
     IGNORE NULLS) OVER (PARTITION BY grp, member_id ORDER BY "at" NULLS FIRST) AS taken
  FROM each
)
SELECT
  grp,
  "at",
  type,
  member_id,
  old_member_id,
  instance_id,
  joined,
  came,
  command,
  carried,
  token,
  epoch,
  topics,
  regex,
  classic,
  waiting,
  granted,
  asked_back,
  freed,
  target,
  COALESCE('i:' || taken.instance_id, 'm:' || member_id) AS seat
FROM seated;

create or replace table group_present as
/* What was said of members that are there, from their joining on: a seat begins when a member joins, and */
/* ends when one departs. */
/* said: what records say of members (consumer/said.sql). */
WITH placed AS (
  SELECT
    *,
    MAX(CASE WHEN joined THEN "at" END) OVER (PARTITION BY grp, seat) AS begun,
    MAX(
      CASE WHEN type IN ('MembersLeft', 'MembersRemoved', 'MemberExpired') THEN "at" END
    ) OVER (PARTITION BY grp, seat) AS ended
  FROM holdfast.group_said
), stepped AS (
  /* A step sets the epoch of a member: to -2, if it releases its instance. `speaks`: who says by this */
  /* which protocol it speaks, whether it is the classic one (K-Q5, K-Q7); a swap by a classic join is of */
  /* a process that speaks that. */
  SELECT
    grp,
    seat,
    "at",
    type,
    member_id,
    instance_id,
    joined,
    came,
    carried,
    token,
    epoch,
    topics,
    regex,
    waiting,
    granted,
    asked_back,
    freed,
    target,
    CASE
      WHEN came
      THEN {'type': type, 'now': 0}
      WHEN type = 'InstanceReleased'
      THEN {'type': type, 'now': -2}
      WHEN type = 'MemberAdvanced'
      THEN {'type': type, 'now': epoch}
    END AS step,
    CASE
      WHEN type = 'MemberSubscribed'
      THEN COALESCE(classic, FALSE)
      WHEN type = 'StaticMemberReplaced'
      THEN COALESCE(command = 'JoinGroup', FALSE)
    END AS speaks
  FROM placed
  WHERE
    "at" >= begun AND (
      ended IS NULL OR ended < begun
    )
), earlier AS (
  /* The step before each record, and what the member spoke before. */
  SELECT
    *,
    LAST_VALUE(step IGNORE NULLS) OVER (
      PARTITION BY grp, seat
      ORDER BY "at" NULLS FIRST
      rows BETWEEN UNBOUNDED preceding AND 1 preceding
    ) AS before,
    LAST_VALUE(speaks IGNORE NULLS) OVER (
      PARTITION BY grp, seat
      ORDER BY "at" NULLS FIRST
      rows BETWEEN UNBOUNDED preceding AND 1 preceding
    ) AS spoke
  FROM stepped
), renewing AS (
  /* What grants all that a seat owns anew, beside what it grants (S12, S13). That is a swap whose holder */
  /* had not released the instance: both processes may run. A member of the classic protocol is told one */
  /* token, so all gets that of the newest grant; and as a member begins to speak that protocol. */
  SELECT
    *,
    CASE
      WHEN carried
      THEN NULL
      WHEN type = 'StaticMemberReplaced'
      AND (
        speaks OR NOT COALESCE(before.type = 'InstanceReleased', FALSE)
      )
      THEN "at"
      WHEN type = 'MemberSubscribed'
      AND NOT COALESCE(joined, FALSE)
      AND speaks
      AND NOT COALESCE(spoke, FALSE)
      THEN "at"
      WHEN type = 'MemberAdvanced' AND ARRAY_LENGTH(granted) > 0 AND spoke
      THEN "at"
    END AS renews
  FROM earlier
)
SELECT
  grp,
  seat,
  "at",
  type,
  member_id,
  instance_id,
  came,
  carried,
  token,
  epoch,
  topics,
  regex,
  waiting,
  granted,
  asked_back,
  freed,
  target,
  step,
  before.now AS epoch_before,
  speaks,
  renews,
  LAST_VALUE(renews IGNORE NULLS) OVER (
    PARTITION BY grp, seat
    ORDER BY "at" NULLS FIRST
    rows BETWEEN UNBOUNDED preceding AND 1 preceding
  ) AS renewed
FROM renewing;

create or replace table group_seats as
/* The member in each seat that is taken: what it wants, where it is, and what it is to own; each is what */
/* was said of the seat last. */
/* present: what records say of members that are there (consumer/present.sql). */
SELECT
  grp,
  seat,
  ARG_MAX_NULL(member_id, CASE WHEN came THEN "at" END) AS member_id,
  ARG_MAX_NULL(instance_id, CASE WHEN came THEN "at" END) AS instance_id,
  ARG_MAX_NULL(
    CONCAT_WS('|', COALESCE(ARRAY_TO_STRING(topics, ','), ''), regex),
    CASE WHEN type = 'MemberSubscribed' THEN "at" END
  ) AS wants,
  ARG_MAX_NULL(
    CONCAT_WS(
      ':',
      step.now,
      CASE WHEN came THEN 0 ELSE epoch_before END,
      CASE WHEN waiting THEN 'waiting' ELSE '' END
    ),
    CASE WHEN NOT step IS NULL THEN "at" END
  ) AS progress, /* A member's epoch, the one before (K-M11), and whether it waits for others (K-O8). */
  ARG_MAX_NULL(target, CASE WHEN type = 'TargetStored' THEN "at" END) AS target,
  MAX(CASE WHEN type = 'InstanceReleased' THEN "at" END) AS released,
  MAX(CASE WHEN type = 'StaticMemberReplaced' THEN "at" END) AS swapped,
  ARG_MAX_NULL(speaks, CASE WHEN NOT speaks IS NULL THEN "at" END) AS speaks,
  MAX(renews) AS last_renewed
FROM holdfast.group_present
GROUP BY
  grp,
  seat;

create or replace table group_held as
/* Who owns each partition, by what grant: in which seat, since which epoch and entry (S13, K-O16). What a */
/* group brings from another type keeps the token that it had there: no value of `granted`, if that is not */
/* known. */
/* present: what records say of members that are there (consumer/present.sql); seats: the member in each */
/* seat (consumer/seats.sql). */
WITH moves AS (
  /* The partitions of each step; of one that is in two lists, what changes it last has the greatest `nth`: */
  /* what comes back is granted last. */
  SELECT
    grp,
    seat,
    "at",
    nth,
    how,
    renewed,
    epoch,
    part.topic AS topic,
    partition,
    CASE WHEN carried THEN token ELSE "at" // 16777216 END AS token
  FROM holdfast.group_present
  CROSS JOIN LATERAL (
    SELECT
      UNNEST([
        {'nth': 0, 'how': 'freed', 'parts': freed},
        {'nth': 0, 'how': 'asked_back', 'parts': asked_back},
        {'nth': 1, 'how': 'granted', 'parts': granted}
      ], max_depth => 2)
  ) AS l(nth, how, parts)
  CROSS JOIN UNNEST(parts) AS t(part)
  CROSS JOIN UNNEST(part.partitions) AS n(partition)
  WHERE
    type = 'MemberAdvanced'
), moved AS (
  /* What last happened to each partition in a seat, and when it was last granted. */
  SELECT
    grp,
    seat,
    topic,
    partition,
    MAX({'at': "at", 'nth': nth, 'how': how, 'renewed': renewed}) AS newest,
    MAX(CASE WHEN how = 'granted' THEN {'at': "at", 'epoch': epoch, 'token': token} END) AS given
  FROM moves
  GROUP BY
    grp,
    seat,
    topic,
    partition
), held AS (
  /* A release frees what its member was asked to give up (K-N23). */
  SELECT
    m.grp,
    m.seat,
    s.member_id,
    m.topic,
    m.partition,
    m.newest,
    m.given,
    s.released,
    s.last_renewed,
    m.newest.how = 'asked_back' AS asked
  FROM moved AS m
  JOIN holdfast.group_seats AS s
    ON s.grp = m.grp AND s.seat = m.seat
  WHERE
    m.newest.how <> 'freed'
    AND NOT COALESCE(
      m.newest.how = 'asked_back' AND GREATEST(s.released, s.swapped) > m.newest."at",
      FALSE
    )
)
/* A release lets its successor commit whatever epoch it knows (K-J41). What is asked back is not granted */
/* anew with the rest. */
SELECT
  grp,
  seat,
  member_id,
  topic,
  partition,
  CASE WHEN released > given."at" THEN 0 ELSE given.epoch END AS epoch,
  GREATEST(
    given.token,
    (
      CASE WHEN asked THEN newest.renewed ELSE last_renewed END
    ) // 16777216
  ) AS granted,
  CASE WHEN asked THEN 'revoking' ELSE '' END AS how
FROM held;

create or replace table consumer_entries as
/* The state of groups of the heartbeat protocol, without offsets and without who is to compute */
/* (consumer/choices.sql), as entries. */
/* living: the records of these groups; said: what they say of members (consumer/said.sql); seats: the */
/* members that are there (consumer/seats.sql); held: who owns what (consumer/holdings.sql). */
WITH epochs AS (
  /* The group epoch, and the epoch of the last target. */
  SELECT
    grp,
    kind,
    '' AS key,
    TRY_CAST(value AS TEXT) AS value
  FROM (
    SELECT
      grp,
      COALESCE(ARG_MAX_NULL(epoch, CASE WHEN type = 'EpochRaised' THEN "at" END), 1) AS raised,
      COALESCE(ARG_MAX_NULL(epoch, CASE WHEN type = 'TargetStored' THEN "at" END), 1) AS stored
    FROM holdfast.beating
    GROUP BY
      grp
  )
  CROSS JOIN LATERAL (
    SELECT
      UNNEST([
        {'kind': 'generation', 'value': raised},
        {'kind': 'assignment epoch', 'value': stored}
      ], max_depth => 2)
  ) AS v(kind, value)
), told AS (
  /* Of a target are told its partitions, and what an assignor in a member says beside them. */
  SELECT
    grp,
    member_id,
    instance_id,
    speaks,
    wants,
    progress,
    ARRAY_TO_STRING(
      LIST_TRANSFORM(
        target.partitions,
        LAMBDA part : part.topic || ':' || ARRAY_TO_STRING(LIST_TRANSFORM(part.partitions, LAMBDA n : TRY_CAST(n AS TEXT)), ',')
      ),
      ';'
    ) || '|' || TRY_CAST(COALESCE(target.version, 0) AS TEXT) || '|' || COALESCE(LOWER(HEX(target.metadata)), '') AS aim
  FROM holdfast.group_seats
), members AS (
  /* Who each member is, what it wants, where it is, and what it is to own. */
  SELECT
    grp,
    kind,
    key,
    value
  FROM told
  CROSS JOIN LATERAL (
    SELECT
      UNNEST([
        {'kind': 'member', 'key': member_id, 'value': COALESCE(instance_id, '')},
        {'kind': 'instance', 'key': instance_id, 'value': member_id},
        {'kind': 'protocol', 'key': member_id, 'value': CASE WHEN speaks THEN 'classic' END},
        {'kind': 'subscription', 'key': member_id, 'value': wants},
        {'kind': 'progress', 'key': member_id, 'value': progress},
        {'kind': 'target', 'key': member_id, 'value': CASE WHEN aim <> '|0|' THEN aim END}
      ], max_depth => 2)
  ) AS v(kind, key, value)
  WHERE
    NOT key IS NULL AND NOT value IS NULL
), resolved AS (
  SELECT
    grp,
    regex,
    MAX("at") AS "at",
    ARG_MAX_NULL(topics, "at") AS topics
  FROM holdfast.beating
  WHERE
    type = 'RegexResolved' AND NOT regex IS NULL
  GROUP BY
    grp,
    regex
), spoken AS (
  /* The expression of a member from then on, and the one before; "" is none. */
  SELECT
    grp,
    "at",
    now,
    LAG(now, 1, '') OVER (PARTITION BY grp, seat ORDER BY "at" NULLS FIRST) AS was
  FROM (
    SELECT
      grp,
      seat,
      "at",
      CASE WHEN type = 'MemberSubscribed' THEN regex ELSE '' END AS now
    FROM holdfast.group_said
    WHERE
      type IN ('MemberSubscribed', 'MembersLeft', 'MembersRemoved', 'MemberExpired')
  )
), counted AS (
  SELECT
    grp,
    regex,
    "at",
    SUM(more) AS more
  FROM spoken
  CROSS JOIN LATERAL (
    SELECT
      UNNEST([{'regex': now, 'more': 1}, {'regex': was, 'more': -1}], max_depth => 2)
  ) AS v(regex, more)
  WHERE
    now <> was
  GROUP BY
    grp,
    regex,
    "at"
), forgotten AS (
  /* When each expression last lost its last member. */
  SELECT
    grp,
    regex,
    MAX("at") AS "at"
  FROM (
    SELECT
      grp,
      regex,
      "at",
      SUM(more) OVER (PARTITION BY grp, regex ORDER BY "at" NULLS FIRST) AS users
    FROM counted
  )
  WHERE
    users = 0
  GROUP BY
    grp,
    regex
), regexes AS (
  /* The topics of each expression that some member had ever since (K-P7). */
  SELECT
    r.grp,
    'regex' AS kind,
    r.regex AS key,
    COALESCE(ARRAY_TO_STRING(r.topics, ','), '') AS value
  FROM resolved AS r
  LEFT JOIN forgotten AS f
    ON f.grp = r.grp AND f.regex = r.regex
  WHERE
    f."at" IS NULL OR f."at" < r."at"
)
SELECT
  grp,
  kind,
  key,
  value
FROM epochs
UNION ALL
SELECT
  grp,
  kind,
  key,
  value
FROM members
UNION ALL
SELECT
  grp,
  'owned',
  CONCAT_WS('/', topic, partition),
  CONCAT_WS(':', member_id, epoch, granted, how)
FROM holdfast.group_held
UNION ALL
SELECT
  grp,
  kind,
  key,
  value
FROM regexes;

create or replace table choices as
/* Who is to compute a group's target, who is late, and whose assignor made the target (KIP-848). */
/* The member that was asked last is to compute, until there is a target or its process is gone; who */
/* was asked and did not install a target in time is late. */
/* living: the records of groups of the heartbeat protocol; said: what they say of members */
/* (consumer/said.sql). */
WITH groups AS (
  SELECT
    grp,
    MAX(
      CASE
        WHEN type = 'AssignmentRequested'
        THEN {'at': "at", 'member_id': member_id, 'epoch': epoch, 'assignor': assignor}
      END
    ) AS asked,
    MAX(CASE WHEN type = 'TargetStored' THEN "at" END) AS stored,
    MAX(CASE WHEN type IN ('RegexResolved', 'StaticMemberReplaced') THEN "at" END) AS overtaken,
    ARG_MAX_NULL(
      CASE WHEN installed_by <> '' THEN assignor END,
      CASE WHEN type = 'TargetStored' THEN "at" END
    ) AS client_assignor
  FROM holdfast.beating
  WHERE
    type IN ('AssignmentRequested', 'TargetStored', 'RegexResolved', 'StaticMemberReplaced')
  GROUP BY
    grp
), stopped AS (
  /* When a member id departed, released its instance, or another one took that. */
  SELECT
    grp,
    stopped_id,
    MAX("at") AS "at"
  FROM (
    SELECT
      grp,
      "at",
      CASE WHEN type = 'StaticMemberReplaced' THEN old_member_id ELSE member_id END AS stopped_id
    FROM holdfast.group_said
    WHERE
      type IN ('MembersLeft', 'MembersRemoved', 'MemberExpired')
      OR type IN ('InstanceReleased', 'StaticMemberReplaced')
  )
  GROUP BY
    grp,
    stopped_id
), asked AS (
  /* The member that was asked last, if it still is to compute. It is told whether what it was given */
  /* may be of the past: since then a member goes on under another id, or the topics of an expression */
  /* were looked up. */
  SELECT
    g.grp,
    'asked' AS kind,
    CONCAT_WS(
      ':',
      g.asked.member_id,
      g.asked.epoch,
      g.asked.assignor,
      CASE WHEN g.overtaken > g.asked."at" THEN 'overtaken' ELSE '' END
    ) AS value
  FROM groups AS g
  LEFT JOIN stopped AS s
    ON s.grp = g.grp AND s.stopped_id = g.asked.member_id
  WHERE
    NOT g.asked IS NULL
    AND NOT COALESCE(GREATEST(g.stored, s."at") > g.asked."at", FALSE)
), marks AS (
  /* What made members late, or might end that: what happens to the process in a seat, and what is */
  /* said of a member id without its seat: that it was late, and that it installed a target after all. */
  SELECT
    grp,
    "at",
    CASE
      WHEN joined
      THEN 'came'
      WHEN type = 'StaticMemberReplaced'
      THEN 'swapped'
      WHEN type = 'InstanceReleased'
      THEN 'released'
      ELSE 'gone'
    END AS mark,
    member_id,
    seat,
    old_member_id,
    TRY_CAST(NULL AS TEXT) AS asked_id
  FROM holdfast.group_said
  WHERE
    joined
    OR type IN ('MembersLeft', 'MembersRemoved', 'MemberExpired')
    OR type IN ('InstanceReleased', 'StaticMemberReplaced')
  UNION ALL
  SELECT
    grp,
    "at",
    CASE WHEN type = 'AssignmentRequested' THEN 'named' ELSE 'installed' END,
    CASE WHEN type = 'AssignmentRequested' THEN late ELSE installed_by END,
    TRY_CAST(NULL AS TEXT),
    TRY_CAST(NULL AS TEXT),
    CASE WHEN type = 'AssignmentRequested' THEN member_id END
  FROM holdfast.beating
  WHERE
    type IN ('AssignmentRequested', 'TargetStored')
), chosen AS (
  /* At each mark, who was asked last and when; nobody, if a target came of it. */
  SELECT
    grp,
    "at",
    mark,
    member_id,
    seat,
    old_member_id,
    LAST_VALUE(
      CASE
        WHEN mark IN ('named', 'installed')
        THEN {'asked_id': asked_id, 'at': "at"}
      END
     IGNORE NULLS) OVER (PARTITION BY grp ORDER BY "at" NULLS FIRST) AS choice
  FROM marks
), seated AS (
  /* The seat that an id took last; `asked`: when the old process of a swap was to compute, if nothing */
  /* had come of it yet. */
  SELECT
    grp,
    "at",
    mark,
    member_id,
    LAST_VALUE(seat IGNORE NULLS) OVER (PARTITION BY grp, member_id ORDER BY "at" NULLS FIRST) AS seat,
    CASE WHEN mark = 'swapped' AND choice.asked_id = old_member_id THEN choice."at" END AS asked
  FROM chosen
), placed AS (
  /* Whether the id is in its seat still, and since when that seat's process runs. A stranger, and */
  /* the "" that names nobody, have no seat and are passed over. */
  SELECT
    grp,
    "at",
    mark,
    member_id,
    seat,
    asked,
    MAX(CASE WHEN mark IN ('came', 'swapped', 'gone', 'released') THEN "at" END) OVER (
      PARTITION BY grp, seat
      ORDER BY "at" NULLS FIRST
      rows BETWEEN UNBOUNDED preceding AND 1 preceding
    ) AS since,
    LAST_VALUE(
      CASE WHEN mark IN ('came', 'swapped') THEN member_id WHEN mark = 'gone' THEN '' END
     IGNORE NULLS) OVER (PARTITION BY grp, seat ORDER BY "at" NULLS FIRST) = member_id AS there
  FROM seated
  WHERE
    NOT seat IS NULL
), seats AS (
  /* Being late is passed on with the seat: the process in whose place one came that was to compute, */
  /* or was late, is late since then, unless the old one had said that it stops (INV-16). */
  SELECT
    grp,
    seat,
    ARG_MAX_NULL(member_id, CASE WHEN mark IN ('came', 'swapped') THEN "at" END) AS member_id,
    MAX(
      CASE
        WHEN (
          mark = 'named' AND there
        ) OR (
          mark = 'swapped' AND asked > since
        )
        THEN "at"
      END
    ) AS became,
    MAX(
      CASE
        WHEN mark IN ('gone', 'released') OR (
          mark = 'installed' AND there
        )
        THEN "at"
      END
    ) AS struck,
    MAX(CASE WHEN mark = 'swapped' THEN "at" END) AS passed
  FROM placed
  GROUP BY
    grp,
    seat
), late AS (
  /* The late ones, in the order in which they became so last. */
  SELECT
    grp,
    'late' AS kind,
    ARRAY_TO_STRING(
      LIST_TRANSFORM(
        LIST_SORT(
          ARRAY_AGG({'since': GREATEST(became, passed), 'member_id': member_id}) FILTER(WHERE {'since': GREATEST(became, passed), 'member_id': member_id} IS NOT NULL)
        ),
        LAMBDA each : each.member_id
      ),
      ','
    ) AS value
  FROM seats
  WHERE
    NOT became IS NULL AND (
      struck IS NULL OR struck < became
    )
  GROUP BY
    grp
)
SELECT
  grp,
  kind,
  '' AS key,
  value
FROM asked
UNION ALL
SELECT
  grp,
  kind,
  '',
  value
FROM late
UNION ALL
/* The assignor of the last target, if it ran in a member. */
SELECT
  grp,
  'client assignor',
  '',
  client_assignor
FROM groups
WHERE
  NOT client_assignor IS NULL;

create or replace table grants as
/* Who is in each classic group, what each member holds, and the index of the entry that granted it. */
/* An assignment writes every member's key; a join phase that opens before the assignment arrives */
/* clears them (Kafka's rule for CompletingRebalance); a swap keeps the key under a new index, if the */
/* instance had any. What a group brings from another type keeps the token that it had there: no */
/* value of `granted`, if that is not known. */
/* holdfast.classic: the records of these groups. `identity` stays the same in a swap: the instance of a */
/* static member, the id of a dynamic one. */
WITH told AS (
  SELECT
    grp,
    "at",
    type,
    token,
    instance_id,
    who,
    comes,
    COALESCE('i:' || instance_id, 'm:' || who) AS identity
  FROM holdfast.classic
  CROSS JOIN LATERAL (
    SELECT
      UNNEST(CASE
        WHEN type = 'MemberJoined'
        THEN [{'who': member_id, 'comes': TRUE}]
        WHEN type = 'StaticMemberReplaced'
        THEN [{'who': old_member_id, 'comes': FALSE}, {'who': member_id, 'comes': TRUE}]
        WHEN type IN ('MemberExpired', 'MemberRefused')
        THEN [{'who': member_id, 'comes': FALSE}]
        WHEN type IN ('MembersLeft', 'MembersRemoved')
        THEN LIST_TRANSFORM(members, LAMBDA member : {'who': member, 'comes': FALSE})
        WHEN NOT removed IS NULL
        THEN LIST_TRANSFORM(removed, LAMBDA member : {'who': member, 'comes': FALSE})
      END, max_depth => 2)
  ) AS each(who, comes)
), last_told AS (
  SELECT
    grp,
    who,
    ARG_MAX_NULL({'comes': comes, 'instance_id': instance_id, 'identity': identity}, "at") AS last
  FROM told
  GROUP BY
    grp,
    who
), members AS (
  /* Ids that came after they last departed. */
  SELECT
    grp,
    who AS member_id,
    last.instance_id,
    last.identity
  FROM last_told
  WHERE
    last.comes
), since AS (
  /* When somebody last joined with each identity, and when it was last swapped. */
  SELECT
    grp,
    identity,
    MAX(CASE WHEN type = 'MemberJoined' THEN "at" END) AS joined,
    ARG_MAX_NULL(token, CASE WHEN type = 'MemberJoined' THEN "at" END) AS token,
    MAX(CASE WHEN type = 'StaticMemberReplaced' THEN "at" END) AS swapped
  FROM told
  WHERE
    comes
  GROUP BY
    grp,
    identity
), phases AS (
  SELECT
    grp,
    "at",
    type,
    grants,
    carried,
    LAG(type) OVER (PARTITION BY grp ORDER BY "at" NULLS FIRST) AS before
  FROM holdfast.classic
  WHERE
    type IN ('RebalanceStarted', 'GenerationStarted', 'AssignmentStored', 'GroupEmptied')
), given AS (
  SELECT
    grp,
    MAX(
      CASE WHEN type = 'RebalanceStarted' AND before = 'GenerationStarted' THEN "at" END
    ) AS wiped,
    MAX(CASE WHEN type = 'AssignmentStored' THEN "at" END) AS stored,
    ARG_MAX_NULL(grants, CASE WHEN type = 'AssignmentStored' THEN "at" END) AS grants,
    ARG_MAX_NULL(carried, CASE WHEN type = 'AssignmentStored' THEN "at" END) AS carried
  FROM phases
  GROUP BY
    grp
), names AS (
  SELECT DISTINCT
    grp,
    who,
    identity
  FROM told
  WHERE
    comes
), assigned AS (
  /* What the last assignment has for each identity. */
  SELECT
    each.grp,
    identity,
    MIN(LOWER(HEX(each.assignment))) AS assignment
  FROM (
    SELECT
      grp,
      one.member_id,
      one.assignment
    FROM given
    CROSS JOIN UNNEST(grants) AS g(one)
  ) AS each
  JOIN names
    ON names.grp = each.grp AND names.who = each.member_id
  GROUP BY
    each.grp,
    identity
), known AS (
  SELECT
    members.grp,
    members.identity,
    member_id,
    instance_id,
    assignment,
    wiped,
    stored,
    token,
    carried,
    COALESCE(stored > joined, FALSE) AS counts,
    CASE WHEN swapped > joined THEN swapped // 16777216 END AS swapped
  FROM members
  JOIN since
    ON since.grp = members.grp AND since.identity = members.identity
  LEFT JOIN given
    ON given.grp = members.grp
  LEFT JOIN assigned
    ON assigned.grp = members.grp AND assigned.identity = members.identity
), judged AS (
  SELECT
    *,
    counts AND COALESCE(wiped < stored, TRUE) AS kept
  FROM known
)
SELECT
  grp,
  identity,
  member_id,
  instance_id,
  CASE
    WHEN counts
    THEN GREATEST(CASE WHEN carried THEN token ELSE stored // 16777216 END, swapped)
    ELSE 0
  END AS granted,
  CASE WHEN kept THEN COALESCE(assignment, '') ELSE '' END AS held,
  CASE WHEN counts AND NOT kept THEN assignment END AS abandoned
FROM judged;

create or replace table classic_entries as
/* The state of classic groups without their offsets, one row a key. */
/* holdfast.classic: the records of these groups; holdfast.grants: what classic/grants.sql finds in them. */
WITH generations AS (
  /* The generation of the last closed join phase; 0 before the first. */
  SELECT
    grp,
    COALESCE(
      ARG_MAX_NULL(generation, CASE WHEN type IN ('GenerationStarted', 'GroupEmptied') THEN "at" END),
      0
    ) AS number
  FROM holdfast.classic
  GROUP BY
    grp
)
SELECT
  grp,
  kind,
  key,
  value
FROM holdfast.grants
CROSS JOIN LATERAL (
  SELECT
    UNNEST([
      {'kind': 'member', 'key': member_id, 'value': COALESCE(instance_id, '')},
      {'kind': 'instance', 'key': instance_id, 'value': member_id},
      {'kind': 'grant', 'key': member_id, 'value': CONCAT_WS(':', granted, held)},
      {'kind': 'abandoned', 'key': member_id, 'value': CASE WHEN abandoned <> '' THEN abandoned END}
    ], max_depth => 2)
) AS each(kind, key, value)
WHERE
  NOT key IS NULL AND NOT value IS NULL
UNION ALL
SELECT
  grp,
  'generation',
  '',
  TRY_CAST(number AS TEXT)
FROM generations;

create or replace table lines as
/* What was said of each seat, in all its lines, with what was known of it before. */
/* A member's seat is what a swap passes on: that of its instance, or of its id if it has none. All that is */
/* said of a seat since somebody joined it is one line of rows; what its holder said last counts. A */
/* conversion goes on with the line: it ends what only the heartbeat protocol knows. */
/* Reads living: the rows of each group's present life. */
WITH told AS (
  /* One row for each member that a record tells of. Who rejoined is told with the id of the request that */
  /* this serves, which stands at the same place of another list. What a checkpoint tells of a member is */
  /* MemberKept. */
  SELECT
    grp,
    "at",
    grp_seq,
    log_time_ms,
    principal,
    instance_id,
    joined,
    group_type,
    profile,
    classic_profile,
    life,
    beat,
    session_timeout_ms,
    absence_ms,
    number,
    predecessor_ms,
    late,
    ARRAY_LENGTH(granted) AS granted,
    CASE WHEN type = 'MemberKept' THEN members END AS asked_before,
    it.who AS who,
    it.what AS what,
    CASE WHEN it.what = 'Rejoined' THEN served[n + 1] ELSE join_id END AS served_id
  FROM holdfast.told
  CROSS JOIN LATERAL (
    SELECT
      n - 1 AS n,
      it
    FROM UNNEST(CASE
      WHEN type IN (
        'MemberJoined',
        'MemberUpdated',
        'StaticMemberReplaced',
        'InstanceReleased',
        'MemberExpired',
        'MemberRefused',
        'MemberSubscribed',
        'MemberAdvanced',
        'MemberKept'
      )
      THEN [{'who': member_id, 'what': type}]
      WHEN type IN ('MembersLeft', 'MembersRemoved')
      THEN LIST_TRANSFORM(members, LAMBDA m : {'who': m, 'what': type})
      WHEN type = 'GenerationStarted'
      THEN COALESCE(
        LIST_TRANSFORM(
          CASE WHEN NOT served IS NULL THEN members END,
          LAMBDA m : {'who': m, 'what': 'Rejoined'}
        ),
        []
      ) || COALESCE(LIST_TRANSFORM(removed, LAMBDA m : {'who': m, 'what': 'Gone'}), [])
      WHEN type = 'GroupConverted'
      THEN LIST_TRANSFORM(converted, LAMBDA c : {'who': c.member_id, 'what': type})
    END) WITH ORDINALITY AS v(it, n)
  )
), named AS (
  SELECT
    *,
    COALESCE(what = 'MemberJoined' OR (
      what = 'MemberSubscribed' AND joined
    ), FALSE) AS joins, /* What begins a line. */
    what = 'StaticMemberReplaced' AS swaps,
    what IN ('Gone', 'MembersLeft', 'MembersRemoved', 'MemberExpired', 'MemberRefused') AS ends
  FROM told
), taken AS (
  SELECT
    *,
    LAST_VALUE(CASE WHEN joins OR swaps THEN {'id': instance_id} END IGNORE NULLS) OVER (PARTITION BY grp, who ORDER BY "at" NULLS FIRST) AS took
  FROM named
), seated AS (
  SELECT
    *,
    COALESCE('i:' || took.id, 'm:' || who) AS seat
  FROM taken
), typed AS (
  /* A group that somebody joined classic is of that type, and so on. */
  SELECT
    *,
    LAST_VALUE(
      CASE
        WHEN what = 'MemberJoined'
        THEN FALSE
        WHEN what = 'MemberSubscribed'
        THEN TRUE
        WHEN what = 'GroupConverted'
        THEN group_type = 'consumer'
      END
     IGNORE NULLS) OVER (PARTITION BY grp, seat ORDER BY "at" NULLS FIRST) AS beats
  FROM seated
), heard AS (
  /* A swap in a group of the heartbeat protocol by a process that does not speak the classic one says nothing */
  /* of that. */
  SELECT
    *,
    beats AND swaps AND ARRAY_LENGTH(profile.protocols) = 0 AS silent,
    what IN ('MemberJoined', 'MemberUpdated', 'MemberSubscribed') OR swaps AS speaks,
    joins OR swaps OR what = 'GroupConverted' AS fresh
  FROM typed
), words AS (
  /* What a row says of the classic protocol, of timeouts, and of the life of a process. */
  SELECT
    *,
    CASE
      WHEN speaks
      THEN {'said': CASE
        WHEN what = 'MemberSubscribed'
        THEN CASE
          WHEN NOT classic_profile IS NULL
          THEN {'session_timeout_ms': classic_profile.session_timeout_ms, 'protocols': classic_profile.protocols}
        END
        WHEN NOT silent
        THEN {'session_timeout_ms': profile.session_timeout_ms, 'protocols': profile.protocols}
      END}
    END AS says,
    CASE
      WHEN speaks OR what = 'Rejoined'
      THEN {'id': CASE
        WHEN what = 'MemberSubscribed'
        THEN classic_profile.request_id
        WHEN NOT silent
        THEN served_id
      END}
    END AS asks,
    CASE
      WHEN joins
      THEN COALESCE(life, '')
      WHEN fresh
      THEN ''
      WHEN what = 'MemberSubscribed' AND life <> ''
      THEN life
    END AS lives,
    CASE
      WHEN what = 'InstanceReleased'
      THEN TRUE
      WHEN joins OR swaps OR what = 'MemberAdvanced'
      THEN FALSE
    END AS stops
  FROM heard
), past AS (
  SELECT
    *,
    LAST_VALUE(says IGNORE NULLS) OVER earlier AS said_before,
    LAST_VALUE(asks IGNORE NULLS) OVER earlier AS asked_last,
    LAST_VALUE(lives IGNORE NULLS) OVER earlier AS was_life,
    LAST_VALUE(profile.rebalance_timeout_ms IGNORE NULLS) OVER earlier AS was_given_ms,
    LAST_VALUE(stops IGNORE NULLS) OVER earlier AS had_stopped
  FROM words
  WINDOW earlier AS (
    PARTITION BY grp, seat
    ORDER BY "at" NULLS FIRST
    rows BETWEEN UNBOUNDED preceding AND 1 preceding
  )
)
SELECT
  grp,
  seat,
  "at",
  who,
  what,
  joins,
  swaps,
  ends,
  beats,
  grp_seq,
  log_time_ms,
  principal,
  profile,
  beat,
  session_timeout_ms,
  absence_ms,
  number,
  predecessor_ms,
  late,
  granted,
  asked_before,
  says,
  asks,
  lives,
  stops,
  said_before.said AS was_said,
  asked_last.id AS was_asked,
  was_life,
  was_given_ms,
  had_stopped,
  MAX(CASE WHEN joins THEN "at" END) OVER whole AS begun, /* Since when the present line runs, and when somebody left the seat last. */
  MAX(CASE WHEN ends THEN "at" END) OVER whole AS ended,
  MAX(CASE WHEN fresh OR lives <> was_life THEN "at" END) OVER whole AS renewed,
  MAX(CASE WHEN fresh THEN "at" END) OVER whole AS freshened,
  MAX(CASE WHEN what = 'GroupConverted' THEN "at" END) OVER whole AS converted_at
FROM past
WINDOW whole AS (PARTITION BY grp, seat);

create or replace table seats as
/* The members that are there, with what each said last. */
/* Reads said: what was said of each seat (members/lines.sql). */
WITH present AS (
  /* The present line of each seat that nobody has left since. What the heartbeat protocol told ends as the */
  /* group is converted. */
  SELECT
    *,
    joins OR swaps AS came,
    what = 'MemberSubscribed' AND "at" > COALESCE(converted_at, 0) AS subscribed,
    "at" > freshened AS since
  FROM holdfast.lines
  WHERE
    "at" >= begun AND (
      ended IS NULL OR ended < begun
    )
), granting AS (
  SELECT
    *,
    CASE
      WHEN since
      AND subscribed
      AND NOT joins
      AND beat > 0
      AND profile.rebalance_timeout_ms < was_given_ms
      THEN log_time_ms + was_given_ms
    END AS until_ms, /* A member whose new rebalance timeout is shorter is waited for as long as the old one lasts. */
    TRY_CAST(CASE WHEN joins THEN 0 WHEN swaps OR what = 'MemberKept' THEN predecessor_ms END AS BIGINT) AS wait_ms /* When a member was given something, and how long an older holder may still act on it (S12). Null: that */ /* is to be told by what its group knows then (groups/heads.sql). */
  FROM present
)
SELECT
  grp,
  seat,
  MAX(begun) AS begun,
  ARG_MAX_NULL(who, CASE WHEN came THEN "at" END) AS member_id,
  MAX(CASE WHEN came THEN "at" END) AS came,
  ARG_MAX_NULL(log_time_ms, CASE WHEN came THEN "at" END) AS since_ms,
  ARG_MAX_NULL(COALESCE(number, grp_seq), CASE WHEN joins THEN "at" END) AS joined_seq,
  ARG_MAX_NULL(principal, CASE WHEN came THEN "at" END) AS principal,
  ARG_MAX_NULL(beats, "at") AS beats,
  ARG_MAX_NULL(says, CASE WHEN NOT says IS NULL THEN "at" END).said AS said,
  ARG_MAX_NULL(asks, CASE WHEN NOT asks IS NULL THEN "at" END).id AS request_id,
  ARG_MAX_NULL(profile, CASE WHEN NOT profile IS NULL AND what <> 'MemberKept' THEN "at" END) AS profile,
  ARG_MAX_NULL(profile, CASE WHEN subscribed THEN "at" END) AS wants,
  ARG_MAX_NULL(lives, CASE WHEN NOT lives IS NULL THEN "at" END) AS life,
  MAX(CASE WHEN "at" >= renewed THEN beat END) AS beat,
  MAX(CASE WHEN swaps THEN was_life END) AS life_before,
  ARG_MAX_NULL(late, CASE WHEN what = 'MemberKept' THEN "at" END) AS life_kept,
  ARG_MAX_NULL(session_timeout_ms, CASE WHEN subscribed AND session_timeout_ms > 0 THEN "at" END) AS session_ms,
  GREATEST(MAX(until_ms), MAX(CASE WHEN what = 'MemberKept' AND since THEN number END)) AS unhurried_ms,
  ARG_MAX_NULL(absence_ms, CASE WHEN what = 'InstanceReleased' AND since THEN "at" END) AS absence_ms,
  ARG_MAX_NULL(stops, CASE WHEN NOT stops IS NULL THEN "at" END) AS released,
  LIST_SORT(
    ARRAY_AGG({'at': "at", 'was_asked': was_asked}) FILTER(WHERE
      (
        swaps AND was_asked <> ''
      )
      AND NOT {'at': "at", 'was_asked': was_asked} IS NULL)
  ) AS asked, /* The requests of those that had the seat before, and what a checkpoint tells of them. */
  ARG_MAX_NULL(asked_before, CASE WHEN what = 'MemberKept' THEN "at" END) AS asked_before,
  MAX(
    CASE
      WHEN NOT wait_ms IS NULL OR (
        what = 'MemberAdvanced' AND granted > 0
      )
      THEN {'at': "at", 'log_time_ms': log_time_ms, 'ms': wait_ms}
    END
  ) AS given
FROM granting
GROUP BY
  grp,
  seat;

create or replace table member_entries as
/* What each member said, one row a kind, in the form of `member_entries.entries_of`. */
/* Reads seats: the members that are there (members/seats.sql); kept_from: one row, from where on principals are */
/* kept. */
WITH known AS (
  SELECT
    *,
    CASE
      WHEN came >= (
        SELECT
          kept_from
        FROM holdfast.kept_from
      )
      THEN principal
    END AS owner,
    COALESCE(asked_before, TRY_CAST([] AS TEXT[])) || COALESCE(LIST_TRANSFORM(asked, LAMBDA a : a.was_asked), TRY_CAST([] AS TEXT[])) AS requests,
    GREATEST(COALESCE(life_before, ''), COALESCE(life_kept, '')) AS earlier_life
  FROM holdfast.seats
)
SELECT
  grp,
  kind,
  member_id AS key,
  value
FROM known
CROSS JOIN LATERAL (
  SELECT
    UNNEST([
      {'kind': 'client', 'value': CONCAT_WS('|', profile.client_id, profile.client_host)},
      {'kind': 'timeouts', 'value': CONCAT_WS(':', COALESCE(said.session_timeout_ms, 0), COALESCE(profile.rebalance_timeout_ms, 0))},
      {'kind': 'protocols', 'value': ARRAY_TO_STRING(
        LIST_TRANSFORM(
          said.protocols,
          LAMBDA p : CONCAT_WS(':', p.name, LOWER(HEX(p.metadata)), COALESCE(ARRAY_TO_STRING(p.topics, ','), ''))
        ),
        ';'
      )},
      {'kind': 'request id', 'value': request_id},
      {'kind': 'joined', 'value': CONCAT_WS(':', joined_seq, since_ms)},
      {'kind': 'principal', 'value': owner},
      {'kind': 'replaced', 'value': NULLIF(
        ARRAY_TO_STRING(
          ARRAY_SLICE(
            requests,
            CASE
              WHEN GREATEST(ARRAY_LENGTH(requests) - 7, 1) < -ARRAY_LENGTH(requests)
              THEN ARRAY_LENGTH(requests) + 1
              WHEN GREATEST(ARRAY_LENGTH(requests) - 7, 1) < 0
              THEN ARRAY_LENGTH(requests) + GREATEST(ARRAY_LENGTH(requests) - 7, 1) + 1
              ELSE GREATEST(ARRAY_LENGTH(requests) - 7, 1)
            END,
            (
              CASE
                WHEN GREATEST(ARRAY_LENGTH(requests) - 7, 1) < -ARRAY_LENGTH(requests)
                THEN ARRAY_LENGTH(requests) + 1
                WHEN GREATEST(ARRAY_LENGTH(requests) - 7, 1) < 0
                THEN ARRAY_LENGTH(requests) + GREATEST(ARRAY_LENGTH(requests) - 7, 1) + 1
                ELSE GREATEST(ARRAY_LENGTH(requests) - 7, 1)
              END + CAST(8 AS BIGINT)
            ) - 1
          ),
          ','
        ) || '|' || earlier_life,
        '|'
      )}, /* Of earlier holders of a seat the last eight request ids are kept (S14). */
      {'kind': 'released', 'value': CASE WHEN released AND NOT beats THEN 'released' END},
      {'kind': 'place', 'value': CASE
        WHEN beats
        THEN NULLIF(
          CONCAT_WS('|', COALESCE(wants.rack_id, ''), COALESCE(wants.server_assignor, '')),
          '|'
        )
      END}, /* What only the heartbeat protocol knows. */
      {'kind': 'client assignors', 'value': CASE
        WHEN beats
        THEN ARRAY_TO_STRING(
          LIST_TRANSFORM(
            wants.client_assignors,
            LAMBDA a : CONCAT_WS(
              ':',
              a.name,
              a.minimum_version,
              a.maximum_version,
              a.reason,
              a.version,
              LOWER(HEX(a.metadata))
            )
          ),
          ';'
        )
      END},
      {'kind': 'beat', 'value': CASE
        WHEN beats
        THEN NULLIF(CONCAT_WS(':', COALESCE(life, ''), COALESCE(beat, 0)), ':0')
      END},
      {'kind': 'session', 'value': CASE
        WHEN beats
        THEN NULLIF(
          CONCAT_WS(':', COALESCE(session_ms, 0), COALESCE(unhurried_ms, 0), COALESCE(absence_ms, 0)),
          '0:0:0'
        )
      END}
    ], max_depth => 2)
) AS v(kind, value)
WHERE
  value <> '';

create or replace table heads as
/* What a group is as a whole: its state, its leader, its times; and how long its members have to wait. */
/* It is the same for groups of both types, over their whole life, whatever they are converted to. */
/* Reads living: the rows of each group's present life; said: what was said of each seat (members/lines.sql); */
/* seats: the members that are there (members/seats.sql). */
WITH told AS (
  /* What tells something of a group as a whole; HeadKept stands for a checkpoint. */
  SELECT
    grp,
    "at",
    type,
    log_time_ms,
    members,
    initial,
    timeout_ms,
    group_type,
    protocol_type,
    protocol_name,
    leader,
    topics_digest,
    number,
    COALESCE(ARRAY_LENGTH(converted), 0) AS converted,
    COALESCE(type = 'GroupConverted' AND group_type = 'classic', FALSE) AS to_classic,
    CASE
      WHEN type = 'EpochRaised' AND predecessor_ms > 0
      THEN log_time_ms + predecessor_ms
      WHEN type = 'HeadKept'
      THEN predecessor_ms
    END AS until_ms /* Until when somebody may still act on what he had, as epochs and checkpoints tell (S12). */
  FROM holdfast.told
  WHERE
    type IN (
      'GroupCreated',
      'RebalanceStarted',
      'GenerationStarted',
      'AssignmentStored',
      'GroupEmptied',
      'GroupConverted',
      'MemberJoined',
      'EpochRaised',
      'TargetStored',
      'RegexResolved',
      'HeadKept'
    )
), moves AS (
  /* Who came and who went; and until when somebody may still act, as swaps and removals tell. */
  SELECT
    grp,
    "at",
    CASE WHEN joins THEN 1 WHEN ends THEN -1 END AS moved,
    log_time_ms + CASE
      WHEN swaps AND (
        NOT beats OR predecessor_ms > 0
      )
      THEN predecessor_ms
      WHEN what = 'MembersRemoved' AND NOT beats
      THEN CASE WHEN had_stopped THEN 0 ELSE COALESCE(was_said.session_timeout_ms, 0) END
    END AS until_ms
  FROM holdfast.lines
  WHERE
    joins OR ends OR swaps
), moved_at AS (
  /* Of one record as many may come as go. */
  SELECT
    grp,
    "at",
    SUM(moved) AS moved,
    MAX(until_ms) AS until_ms
  FROM moves
  GROUP BY
    grp,
    "at"
), filled AS (
  SELECT
    grp,
    "at",
    until_ms,
    NOT moved IS NULL
    AND SUM(moved) OVER (PARTITION BY grp ORDER BY "at" NULLS FIRST) = 0 AS emptied
  FROM moved_at
), facts AS (
  SELECT
    grp,
    "at",
    type,
    log_time_ms,
    members,
    initial,
    timeout_ms,
    group_type,
    protocol_type,
    protocol_name,
    leader,
    topics_digest,
    number,
    converted,
    to_classic,
    until_ms,
    FALSE AS emptied
  FROM told
  UNION ALL
  SELECT
    grp,
    "at",
    NULL,
    NULL,
    NULL,
    NULL,
    NULL,
    NULL,
    NULL,
    NULL,
    NULL,
    NULL,
    NULL,
    NULL,
    NULL,
    until_ms,
    emptied
  FROM filled
), latest AS (
  SELECT
    grp,
    ARG_MAX_NULL(
      COALESCE(group_type, 'classic'),
      CASE WHEN type IN ('GroupCreated', 'GroupConverted') THEN "at" END
    ) AS group_type,
    ARG_MAX_NULL(
      {'type': type, 'log_time_ms': log_time_ms, 'members': members, 'initial': initial, 'timeout_ms': timeout_ms, 'converted': converted},
      CASE
        WHEN type IN (
          'GroupCreated',
          'RebalanceStarted',
          'GenerationStarted',
          'AssignmentStored',
          'GroupEmptied',
          'GroupConverted'
        )
        THEN "at"
      END
    ) AS phase,
    ARG_MAX_NULL(
      CASE WHEN to_classic THEN 'consumer' ELSE protocol_type END,
      CASE WHEN type IN ('MemberJoined', 'HeadKept') OR to_classic THEN "at" END
    ) AS protocol_type,
    ARG_MAX_NULL(
      {'at': "at", 'protocol_name': protocol_name, 'leader': leader},
      CASE
        WHEN type IN ('GenerationStarted', 'GroupEmptied', 'HeadKept') OR to_classic
        THEN "at"
      END
    ) AS choice,
    COALESCE(MAX(CASE WHEN type = 'GroupConverted' THEN "at" END), 0) AS turned,
    ARG_MAX_NULL(
      {'at': "at", 'log_time_ms': log_time_ms},
      CASE WHEN type = 'TargetStored' THEN "at" END
    ) AS target,
    ARG_MAX_NULL(
      {'at': "at", 'digest': topics_digest},
      CASE WHEN type = 'EpochRaised' THEN "at" END
    ) AS raised,
    ARG_MAX_NULL(
      {'at': "at", 'log_time_ms': log_time_ms, 'number': number},
      CASE WHEN type = 'RegexResolved' THEN "at" END
    ) AS resolved,
    COALESCE(MAX(CASE WHEN emptied THEN "at" END), 0) AS emptied, /* When the group last lost its last member. */
    MAX(until_ms) AS until_ms
  FROM facts
  GROUP BY
    grp
  HAVING
    COUNT(type) > 0
), places AS (
  /* The seat that each member id took last. */
  SELECT
    grp,
    who,
    ARG_MAX_NULL(seat, "at") AS seat
  FROM holdfast.lines
  WHERE
    joins OR swaps
  GROUP BY
    grp,
    who
), heads AS (
  /* A conversion ends what only the heartbeat protocol knows. Who leads is whoever has the seat now of the */
  /* member that was chosen, if nobody left it. */
  SELECT
    latest.grp,
    latest.group_type,
    latest.phase,
    latest.protocol_type,
    latest.choice,
    latest.until_ms,
    CASE
      WHEN latest.target."at" > latest.turned AND latest.target."at" > latest.emptied
      THEN latest.target.log_time_ms
    END AS target_ms,
    CASE WHEN latest.raised."at" > latest.turned THEN latest.raised.digest END AS digest,
    CASE WHEN latest.resolved."at" > latest.turned THEN latest.resolved END AS resolved,
    led.member_id AS led_by
  FROM latest
  LEFT JOIN places
    ON places.grp = latest.grp AND places.who = latest.choice.leader
  LEFT JOIN holdfast.seats AS led
    ON led.grp = latest.grp
    AND led.seat = places.seat
    AND led.begun <= latest.choice."at"
), entries AS (
  SELECT
    grp,
    kind,
    value
  FROM heads
  CROSS JOIN LATERAL (
    SELECT
      UNNEST([
        {'kind': 'head', 'value': CASE
          WHEN group_type <> 'consumer'
          THEN CASE
            WHEN phase.type = 'RebalanceStarted'
            THEN 'PreparingRebalance'
            WHEN phase.type = 'GenerationStarted'
            THEN 'CompletingRebalance'
            WHEN phase.type = 'AssignmentStored'
            THEN 'Stable'
            WHEN phase.type = 'GroupConverted' AND phase.converted > 0
            THEN 'Stable'
            ELSE 'Empty'
          END
        END},
        {'kind': 'since', 'value': CASE
          WHEN group_type <> 'consumer'
          AND phase.type IN ('RebalanceStarted', 'GenerationStarted')
          THEN TRY_CAST(phase.log_time_ms AS TEXT)
        END},
        {'kind': 'protocol type', 'value': CASE WHEN group_type <> 'consumer' THEN protocol_type END},
        {'kind': 'chosen', 'value': CASE WHEN group_type <> 'consumer' THEN choice.protocol_name END},
        {'kind': 'leader', 'value': CASE WHEN group_type = 'classic' AND choice.leader <> '' THEN led_by END},
        {'kind': 'rejoined', 'value': CASE
          WHEN group_type <> 'consumer' AND phase.type = 'GenerationStarted'
          THEN ARRAY_TO_STRING(phase.members, ',')
        END},
        {'kind': 'join phase', 'value': CASE
          WHEN group_type <> 'consumer' AND phase.type = 'RebalanceStarted'
          THEN NULLIF(CONCAT_WS(':', TRY_CAST(phase.initial AS TEXT), phase.timeout_ms), 'false:0')
        END},
        {'kind': 'predecessors', 'value': CASE WHEN until_ms > 0 THEN TRY_CAST(until_ms AS TEXT) END},
        {'kind': 'target time', 'value': CASE
          WHEN group_type = 'consumer' AND target_ms >= 0
          THEN TRY_CAST(target_ms AS TEXT)
        END},
        {'kind': 'digest', 'value': CASE WHEN group_type = 'consumer' THEN LOWER(HEX(digest)) END},
        {'kind': 'expressions', 'value': CASE
          WHEN group_type = 'consumer' AND resolved.log_time_ms >= 0
          THEN CONCAT_WS(':', resolved.log_time_ms, resolved.number)
        END}
      ], max_depth => 2)
  ) AS v(kind, value)
  WHERE
    value <> ''
), grants AS (
  /* What was given to each member alone, and, of the group, what was given to all, and what was told. */
  SELECT
    grp,
    member_id,
    begun,
    given,
    TRY_CAST(NULL AS BIGINT) AS "at",
    TRY_CAST(NULL AS BIGINT) AS until_ms,
    TRY_CAST(NULL AS BIGINT) AS stored_at,
    TRY_CAST(NULL AS BIGINT) AS stored_ms
  FROM holdfast.seats
  UNION ALL
  SELECT
    grp,
    NULL,
    NULL,
    NULL,
    "at",
    until_ms,
    CASE WHEN type = 'AssignmentStored' THEN "at" END,
    CASE WHEN type = 'AssignmentStored' THEN log_time_ms END
  FROM told
  WHERE
    type = 'AssignmentStored' OR NOT until_ms IS NULL
  UNION ALL
  SELECT
    grp,
    NULL,
    NULL,
    NULL,
    "at",
    until_ms,
    NULL,
    NULL
  FROM moves
  WHERE
    NOT until_ms IS NULL
), assigned AS (
  SELECT
    grp,
    member_id,
    begun,
    given,
    "at",
    until_ms,
    MAX(stored_at) OVER whole AS stored_at,
    ARG_MAX_NULL(stored_ms, stored_at) OVER whole AS stored_ms
  FROM grants
  WINDOW whole AS (PARTITION BY grp)
), newest AS (
  /* An assignment gives to all that are there then. */
  SELECT
    *,
    COALESCE(stored_at > begun AND (
      given IS NULL OR stored_at > given."at"
    ), FALSE) AS by_group
  FROM assigned
), in_order AS (
  SELECT
    grp,
    member_id,
    until_ms,
    CASE WHEN member_id IS NULL THEN 1 ELSE 0 END AS nth,
    CASE WHEN member_id IS NULL THEN "at" WHEN by_group THEN stored_at ELSE given."at" END AS "at",
    CASE WHEN by_group THEN stored_ms ELSE given.log_time_ms END AS log_time_ms,
    CASE WHEN NOT by_group THEN given.ms END AS ms
  FROM newest
), waits AS (
  /* How long is told by the event itself, or else by what had been told of the group before it. */
  SELECT
    grp,
    member_id,
    COALESCE(
      ms,
      GREATEST(
        MAX(until_ms) OVER (PARTITION BY grp ORDER BY "at" NULLS FIRST, nth NULLS FIRST) - log_time_ms,
        0
      )
    ) AS ms
  FROM in_order
)
SELECT
  grp,
  kind,
  '' AS key,
  value
FROM entries
UNION ALL
SELECT
  grp,
  'predecessor',
  member_id,
  TRY_CAST(ms AS TEXT)
FROM waits
WHERE
  NOT member_id IS NULL AND ms > 0;

create or replace table versions as
/* The last entry of each group, and the number of its records. */
/* Reads counted: all rows of each group's life, those of the dedupe table as well. Rows of a log have a */
/* rule; of those that stand for a checkpoint, HeadKept tells the version that the group had. */
WITH latest AS (
  SELECT
    grp,
    MAX(CASE WHEN NOT rule IS NULL THEN idx WHEN type = 'HeadKept' THEN beat END) AS version,
    ARG_MAX_NULL(grp_seq, "at") AS seq,
    BOOL_OR(CAST(type <> 'RequestRecorded' AS BOOLEAN)) AS lives
  FROM holdfast.living
  GROUP BY
    grp
)
SELECT
  grp,
  'version' AS kind,
  '' AS key,
  CONCAT_WS(':', version, seq) AS value
FROM latest
WHERE
  lives;

create or replace table offsets as
/* The last offset of each partition, and what was kept beside it, unless it was deleted. */
/* holdfast.living: the records of groups. Most records of a log are commits, so all that is aggregated here */
/* has a fixed size: Spark then keeps it by hash and sorts nothing. So text that is kept beside an */
/* offset is told by its CRC-32. Up to seven partitions of one record have places of their own behind */
/* the record's; of two that are equal in a longer one, Spark takes the latter. */
WITH commits AS (
  SELECT
    grp,
    "at",
    log_time_ms,
    offsets,
    beside
  FROM holdfast.living
  WHERE
    NOT offsets IS NULL
), flat AS (
  SELECT
    grp,
    it.topic,
    it.partition,
    it."offset",
    log_time_ms,
    "at" + LEAST(nth, 7) AS "at",
    GET(beside, nth).leader_epoch AS epoch,
    CRC32(ENCODE(GET(beside, nth).metadata)) AS text
  FROM commits
  CROSS JOIN LATERAL (
    SELECT
      nth - 1 AS nth,
      it
    FROM UNNEST(offsets) WITH ORDINALITY AS each(it, nth)
  )
), last AS (
  SELECT
    grp,
    topic,
    partition,
    ARG_MAX_NULL("offset", "at") AS "offset",
    ARG_MAX_NULL(epoch, "at") AS epoch,
    ARG_MAX_NULL(log_time_ms, "at") AS log_time_ms,
    ARG_MAX_NULL(text, "at") AS text
  FROM flat
  GROUP BY
    grp,
    topic,
    partition
)
SELECT
  grp,
  kind,
  CONCAT_WS('/', topic, partition) AS key,
  value
FROM last
CROSS JOIN LATERAL (
  SELECT
    UNNEST([
      {'kind': 'offset', 'value': TRY_CAST("offset" AS TEXT)},
      {'kind': 'commit', 'value': CONCAT_WS(':', epoch, log_time_ms, text)}
    ], max_depth => 2)
) AS each(kind, value)
WHERE
  NOT "offset" IS NULL;

-- The state, one row a key; without the dedupe table if its bounds have changed.
create or replace view state as
select grp, kind, key, value from consumer_entries
union all
select grp, kind, key, value from choices
union all
select grp, kind, key, value from classic_entries
union all
select grp, kind, key, value from member_entries
union all
select grp, kind, key, value from heads
union all
select grp, kind, key, value from versions
union all
select grp, kind, key, value from offsets
union all
select grp, kind, key, value from cluster_entries
union all
select grp, kind, key, value from request_entries where not (select changed from bounds);
