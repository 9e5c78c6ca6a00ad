"""Says what happened: who owned what and when, rebalances and their causes, restless instances.

One group's records are followed by plain Python in Spark's workers; `queries` sums up in Spark.
"""
