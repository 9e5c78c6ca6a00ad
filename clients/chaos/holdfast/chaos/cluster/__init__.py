"""The cluster under test: its processes, the links between them, and a staging cluster of our own.

Knows no run, no fault and no history.
"""
