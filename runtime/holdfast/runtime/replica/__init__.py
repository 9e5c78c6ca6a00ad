"""The state machine on the log: committed entries are applied in order and made durable."""
