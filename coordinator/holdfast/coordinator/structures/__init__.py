"""Persistent maps and copies of values: pure structures, which know nothing of groups."""
