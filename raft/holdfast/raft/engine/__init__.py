"""PySyncObj made safe from outside (design 5). Others use `Engine` and `raft.api`."""

from holdfast.raft.engine.engine import Engine

__all__ = ["Engine"]
