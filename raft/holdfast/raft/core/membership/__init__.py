"""Which nodes there are, whose word counts, and what a disk must hold before its node's does."""
