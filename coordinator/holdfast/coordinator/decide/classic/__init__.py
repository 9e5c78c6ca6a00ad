"""The classic protocol (KIP-345 static members included), one module a call or a moment.

`join` and `rejoin` let members in, `rounds` opens and closes join phases, `sync` hands out the
assignment, `heartbeat` keeps sessions, `removal` throws members out, `deadline` judges what fired,
`parking` holds the calls that wait. Rules are cited by the letter and number under which they are
tested (K-A1 to K-L16: what Kafka does; S1 to S23: what keeps it safe); the stories tell them in
prose.
"""
