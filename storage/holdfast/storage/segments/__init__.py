"""Sealed segments: the only room that knows Parquet. Written, read, sealed, taken over, checked."""
