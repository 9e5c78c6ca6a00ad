"""Reads logs from disk: which segments a node has, and the rows in their files. No Spark here."""
