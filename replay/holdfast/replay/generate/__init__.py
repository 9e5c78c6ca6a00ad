"""Makes histories of clusters that never ran, for tests, benches and trials; needs no Spark.

Clients are played, and everything else is the product's own: what they ask for is decided by the
coordinator's rules, folded as on every replica, and sealed by the writer that nodes use. `history`
puts it together. Knows the coordinator and the storage; no node, no network, no clock.
"""
