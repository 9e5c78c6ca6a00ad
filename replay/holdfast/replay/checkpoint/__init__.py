"""What a verified run leaves for the next one: a checkpoint in a folder of its own.

`record` is what was verified, `folder` keeps it, `narrowing` finds what of some logs is new,
`parts` are what a fold leaves, and `run` is one verification. Nothing here needs Spark.
"""
