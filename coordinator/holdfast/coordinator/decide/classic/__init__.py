"""The classic protocol (KIP-345 static members included), one module a call or a moment.

`join` and `rejoin` let members in, `rounds` opens and closes join phases, `sync` hands out the
assignment, `heartbeat` keeps sessions, `removal` throws members out, `deadline` judges what fired,
`parking` holds the calls that wait. Rules are cited by their numbers in the Kafka catalogue (A1 to
L16: docs/protocol) and by S-numbers (docs/safety).
"""
