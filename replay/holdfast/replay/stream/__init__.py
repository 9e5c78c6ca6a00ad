"""Follows a log while it grows: what is new becomes Parquet files and alerts, exactly once.

`sealed` tells which segments may be read, `served` asks the nodes of a running cluster; `source`
and `log_source` give either to Spark's Structured Streaming, and `offsets` has what they and a
stream agree on; `endings` has the sentences that end a stream. `followed` is what a tail follows;
`links` checks that nothing lacks; `watch` makes alerts, `watch_state` keeps what it knows from
batch to batch; `output` has the files; `tail` puts them together, and alone knows all of them.
"""

from holdfast.replay import require_spark as _require_spark

_require_spark()
