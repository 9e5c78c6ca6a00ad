"""Proves a log: hashes, gaps, two folds that must agree, and what clients were acknowledged.

`verification` puts the checks together, cheapest first. The folds (`group_fold`, `cluster_fold`)
run in Spark's workers and import no Spark; everything else here is Spark's.
"""
