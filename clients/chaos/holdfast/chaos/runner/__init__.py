"""One run: check the cluster, load it, inject fault after fault, heal it, judge, report.

`run` is the entry point. Knows every other room; none of them knows it.
"""
