"""The state and the event log in LMDB: reads, snapshots, their streams and installs."""
