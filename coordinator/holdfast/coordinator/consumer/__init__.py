"""The heartbeat protocol of consumer groups (KIP-848): the coordinator assigns the partitions."""
