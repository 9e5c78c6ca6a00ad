"""A history: what happened in a run, as values, as lines of a file, and as records of the log.

Knows no checker, no network and no cluster; the simulator writes histories as well.
"""
