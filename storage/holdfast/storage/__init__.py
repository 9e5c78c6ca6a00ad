"""Durability: journal, state, event log and segments on disk. Knows neither network nor Raft."""
