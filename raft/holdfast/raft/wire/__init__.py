"""Bytes between nodes: peer.proto, its generated module, and the strict reading of both."""
