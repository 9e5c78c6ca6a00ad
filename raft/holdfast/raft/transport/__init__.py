"""What carries messages between nodes: gRPC streams, and what a client is told who dials them."""
