"""Periodic work of a leader: expire offsets, end segments."""
