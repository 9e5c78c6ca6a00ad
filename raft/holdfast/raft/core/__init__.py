"""Raft by concerns: elections, lease, replication, proposals, snapshots, lost writes."""
