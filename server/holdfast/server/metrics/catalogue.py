"""Every metric of a node: name, type, meaning, unit and labels.

`docs/operations/metrics.md` is generated from this table (a test compares), and nothing is shown
that is not in it.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

Kind = Literal["counter", "gauge", "histogram"]


class Metric(NamedTuple):
    """One metric."""

    name: str
    kind: Kind
    text: str
    unit: str = ""
    labels: tuple[str, ...] = ()


METRICS: Final = (
    Metric("holdfast_build_info", "gauge",
        "Always 1. `rules`: whether the rules run `compiled` or as `source`.",
        labels=("version", "python", "rules")),
    Metric("holdfast_start_time_seconds", "gauge", "When the process started.", "Unix seconds"),
    Metric("holdfast_resident_bytes", "gauge", "Memory of the process.", "bytes"),
    # calls
    Metric("holdfast_calls_total", "counter",
        "Calls that ended. `code`: the error code of the answer (`NONE`: no error), or the gRPC "
        "status of a call that ended without an answer. Unary calls, and each call on a Session, "
        "HeartbeatStream or OffsetCommitStream; a call that names partitions or members counts "
        "once, whatever became of each.", labels=("method", "code")),
    Metric("holdfast_calls_open", "gauge",
        "Calls without an answer, those that wait for other members included."),
    Metric("holdfast_request_bytes_in_flight", "gauge",
        "Bytes of long requests without an answer; at most 256 MiB.", "bytes"),
    Metric("holdfast_heartbeat_stream_members", "gauge",
        "Members whose last heartbeat came on an open HeartbeatStream or Session."),
    Metric("holdfast_heartbeat_stream_waiting", "gauge",
        "Messages of answers and pushes that wait for the readers of HeartbeatStreams."),
    Metric("holdfast_pushes_total", "counter",
        "Pushes to members: that a rebalance has begun, that they are fenced or removed, or that "
        "they are to beat now."),
    Metric("holdfast_pushes_left_out_total", "counter",
        "Pushes to members that were left out, since 64 messages waited for the reader of their "
        "HeartbeatStream, or 10,000 pushes for that of their Session. The next heartbeat tells "
        "them the same."),
    Metric("holdfast_traces_exported_total", "counter",
        "Traced calls that the collector took; this and the next two on a node with [traces]."),
    Metric("holdfast_traces_failed_total", "counter",
        "Traced calls that the collector did not take within 5 s; they are lost."),
    Metric("holdfast_traces_dropped_total", "counter",
        "Traced calls that were left out, since 2,048 waited for the export."),
    # the log
    Metric("holdfast_commit_seconds", "histogram",
        "From a change's proposal on the leader until it is committed, applied and answered.",
        "seconds"),
    Metric("holdfast_changes_waiting", "gauge", "Changes that wait for an entry; at most 16,384."),
    Metric("holdfast_entries_under_way", "gauge", "The leader's entries that are not committed."),
    Metric("holdfast_journal_sync_seconds", "histogram",
        "Writing and syncing one batch of the journal.", "seconds"),
    Metric("holdfast_engine_tick_lag_seconds", "histogram",
        "By how much the engine's thread is late, looked at four times a second: it waits for the "
        "disk, or for the interpreter.", "seconds"),
    Metric("holdfast_loop_lag_seconds", "histogram",
        "By how much the event loop is late, looked at four times a second.", "seconds"),
    Metric("holdfast_raft_term", "gauge", "The term."),
    Metric("holdfast_raft_leads", "gauge", "1 on the node that leads, else 0."),
    Metric("holdfast_raft_leader_known", "gauge", "1 if this node knows a leader, else 0."),
    Metric("holdfast_raft_leader_changes_total", "counter",
        "Other leaders or terms, looked at four times a second."),
    Metric("holdfast_raft_commit_index", "gauge", "The last committed entry that is known."),
    Metric("holdfast_applied_index", "gauge", "The last entry that is part of the state."),
    Metric("holdfast_peer_connected", "gauge", "1 if messages to the peer pass, else 0.",
        labels=("peer",)),
    Metric("holdfast_peer_queue_bytes", "gauge",
        "Bytes that wait to be sent to a connected peer; at most 32 MiB, and what comes then is "
        "lost and sent again.", "bytes", ("peer",)),
    Metric("holdfast_peer_lag_entries", "gauge",
        "Entries that a peer has not acknowledged; on the leader only.", labels=("peer",)),
    # groups
    Metric("holdfast_groups", "gauge",
        "Groups by Kafka's states; no value for a state that no group is in.", labels=("state",)),
    Metric("holdfast_members", "gauge", "Members of all groups."),
    Metric("holdfast_topics", "gauge", "Topics."),
    Metric("holdfast_partitions", "gauge", "Partitions of all topics."),
    Metric("holdfast_rebalances_total", "counter",
        "Rebalances that began. `cause`: a member `joined`, `left`, was `removed` by an operator, "
        "`expired`, was `late` to join or sync, `returned` as another process of its instance id, "
        "or `changed` its protocols; the group's `leader` or an `operator` asked for it; or the "
        "group is `too_large` for its limit. As all counts of records: of those that this node "
        "applied since its start; do not add those of several nodes.",
        labels=("cause",)),
    Metric("holdfast_rebalance_seconds", "histogram",
        "From a rebalance's begin until its assignment is stored, in log time.", "seconds"),
    Metric("holdfast_without_owner_seconds", "histogram",
        "Seconds without owner: from the begin of a generation, when all that the members of a "
        "group were granted is over, until they are granted something again, in log time.",
        "seconds"),
    Metric("holdfast_members_gone_total", "counter",
        "Members that went or were fenced. `how`: `left`, `removed` by an operator, `expired`, "
        "`late` for a rebalance, `refused` by a full group, `replaced` by another process with "
        "their instance id, or `released` it.", labels=("how",)),
    Metric("holdfast_records_total", "counter", "Records that were applied."),
    Metric("holdfast_record_bytes_total", "counter", "Bytes of the records that were applied.",
        "bytes"),
    # disk
    Metric("holdfast_sealed_index", "gauge", "The entry up to which segments are sealed."),
    Metric("holdfast_disk_free_bytes", "gauge",
        "Free bytes of the file system of `node.data_dir`.", "bytes"),
    Metric("holdfast_disk_total_bytes", "gauge", "All bytes of that file system.", "bytes"),
    Metric("holdfast_disk_full_seconds", "gauge",
        "How long until changes are refused for want of room, if history, journal and state grow "
        "as they did lately and retention deletes as the settings say; +Inf: never. No value: too "
        "little is recorded to tell.", "seconds"),
    Metric("holdfast_retention_hindered", "gauge",
        "1 if history is not deleted although settings say so: the leader cannot propose it, or "
        "this node does not carry it out."),
    Metric("holdfast_directory_bytes", "gauge",
        "Bytes that files take. `part`: `journal`, `state` or `segments`.", "bytes", ("part",)),
    Metric("holdfast_certificate_expiry_seconds", "gauge",
        "When a certificate expires. `file`: the key of [tls]; of several in a file the first to "
        "expire.", "Unix seconds", ("file",)),
)  # fmt: skip

BY_NAME: Final = {metric.name: metric for metric in METRICS}
