"""PySyncObj made safe from outside (docs/adr/0001). Others use `Engine` and `raft.api`."""

from holdfast.raft.engine.engine import Engine

__all__ = ["Engine"]
