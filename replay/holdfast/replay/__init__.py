"""Replay: the event log read, verified, folded and analysed with Spark, away from any node.

Imports `storage` and `coordinator`, never `raft` or `server`: a log must be provable without the
code that wrote it. `app` has the entry points; `read` finds the logs, `spark` has the session and
the workers' tasks; `verify` proves, `analyse` says what happened, `report` shows it; `stream`
follows a log while it grows, and has the client to ask a running cluster for it. `generate` makes
logs of clusters that never ran, and alone needs no Spark.
"""

from importlib.util import find_spec

__all__ = ["SparkMissing", "require_spark"]


class SparkMissing(ImportError):
    """The extra is not installed; the sentence holds the command that installs it."""

    def __init__(self) -> None:
        super().__init__(
            "replay needs the extra [spark], which is not installed: pip install 'holdfast[spark]'"
        )


def require_spark() -> None:
    """Raise SparkMissing where the extra is not installed: called as a room that needs it loads."""
    if find_spec("pyspark") is None:
        raise SparkMissing
