"""One run: admitted, begun on a cluster, broken fault after fault, healed, judged, reported.

`run` is the way in. Knows every other room; none of them knows it.
"""
