"""Traces: one span for each call that is traced, from its arrival to its answer, over OTLP.

`traceparent` reads what callers say, `traces` follows calls, `exporting` sends what has ended.
"""
