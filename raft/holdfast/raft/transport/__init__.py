"""Connections between nodes: TLS over TCP, and the answer to a client that dials the peer port."""
