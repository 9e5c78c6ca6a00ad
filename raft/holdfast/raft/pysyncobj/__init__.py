"""PySyncObj under its overlay: the only room that imports the package pysyncobj (ADR 1)."""
