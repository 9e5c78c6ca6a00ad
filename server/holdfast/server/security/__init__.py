"""TLS of both ports: credentials, who a caller or a peer is, certificates of a local cluster."""
