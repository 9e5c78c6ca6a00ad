"""Backups: a copy of one node's state and history at one index, as files; verified and restored."""
