"""What the clients do while the cluster is broken: members, callers, and the store outside."""
