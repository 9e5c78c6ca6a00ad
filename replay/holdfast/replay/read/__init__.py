"""Reads logs from disk: which segments a node has, the rows in their files, what nodes told of it.

Each module looks at files of one node, or at their names. No Spark here, and no fold.
"""
