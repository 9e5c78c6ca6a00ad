"""The state machine on the log: what is committed, evolved in one order, and made durable."""
