"""One node: gRPC services, group actors, configuration, and the `holdfast` command.

The composition root: the only package that knows every other one. It decides nothing about groups
(that is `holdfast.coordinator`) and nothing about replication (that is `holdfast.raft`).
"""
