"""Messages between nodes over gRPC streams, and the answer to a client that dials the peer port."""
