"""The state of a checkpoint as rows of a log, so that SQL can go on from it.

Rows of records, and of the kinds that no record has and `sql` knows, tell it. Runs in Spark's
workers, and imports no Spark.
"""
