"""Assignors that run in members (KIP-848): which one all share, who runs it, and what it hands in.

A target that a member installs ends in the same command as one that the node computes. Nothing here
knows an assignor.
"""
