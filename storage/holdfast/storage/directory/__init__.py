"""A node's data directory: its lock and identity, its check before a start, its stage."""
