"""What one pass over a bucket of groups gathers, in a worker: sums, and what lists show of it.

All of a group's records are in one bucket, so a group is done when its bucket is. Records and
Arrow columns go in, rows for people come out. Knows no Spark and opens no files.
"""
