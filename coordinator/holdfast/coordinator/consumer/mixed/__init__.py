"""Members of a group of the heartbeat protocol that speak the classic protocol themselves."""
