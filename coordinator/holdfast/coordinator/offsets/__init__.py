"""Committed offsets: committed, deleted, expired; and their fold."""
