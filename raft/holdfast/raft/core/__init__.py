"""Raft by concerns: elections, lease, replication, proposals, snapshots, what a disk has lost."""
