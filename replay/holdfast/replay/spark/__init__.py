"""What Spark itself needs: a Java, a session, a node's log as a table, tasks for the workers."""

from holdfast.replay import require_spark as _require_spark

_require_spark()
