"""One node: its gRPC services, its configuration, its process.

It decides nothing about groups (that is `holdfast.coordinator`), nothing about replication (that is
`holdfast.raft`), and knows nothing of the `holdfast` command, which starts it.
"""
