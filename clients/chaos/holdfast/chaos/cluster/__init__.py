"""The cluster that is broken: its processes, the links between them, one of our own.

Knows no run, no fault and no history: it is asked and told, from outside.
"""
