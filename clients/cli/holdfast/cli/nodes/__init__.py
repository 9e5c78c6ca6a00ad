"""Which nodes a cluster has: each is asked what it tells of itself, and they are changed."""
