"""Proves a log: hashes, gaps, two folds that must agree, and changes acknowledged to clients.

`verification` runs the checks, cheapest first. The folds (`group_fold`, `cluster_fold`)
run in Spark's workers and import no Spark; everything else here is Spark's.
"""
