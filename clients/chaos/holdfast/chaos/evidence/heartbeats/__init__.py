"""What the log says of groups of the heartbeat protocol: who had which epoch, and what moved."""
