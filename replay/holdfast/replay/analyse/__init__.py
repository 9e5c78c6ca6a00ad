"""Says what happened: who owned what and when, rebalances and their causes, restless instances.

One group's records are followed by plain Python in Spark's workers; `queries` sums up in Spark.
"""

from holdfast.replay import require_spark as _require_spark

_require_spark()
