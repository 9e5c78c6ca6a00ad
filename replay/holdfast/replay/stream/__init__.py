"""Follows an archive while it grows: new segments become Parquet files and alerts, exactly once.

`sealed` tells which segments may be read; `source` gives them to Spark's Structured Streaming;
`watch` makes alerts, `watch_state` keeps what it knows from batch to batch; `output` has the files;
`tail` puts them together, and alone knows all of them.
"""

from holdfast.replay import require_spark as _require_spark

_require_spark()
