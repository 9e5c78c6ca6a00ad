"""Who speaks: which member and process a heartbeat is from, in which order, and whose place it is.

Nothing here knows topics or targets.
"""
