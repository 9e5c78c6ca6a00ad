"""Who was refused, and what administrators read: what leaves nothing on the log is kept in files.

They are a node's own, bounded, and written behind: a disk that is slow or full costs records, which
are counted, and never a call.
"""
