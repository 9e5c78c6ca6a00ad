"""The classic protocol (KIP-345 static members included), one module a call or a moment.

`join` and `rejoin` let members in, `rebalance` opens and closes join phases, `sync` hands out the
assignment, `heartbeat` keeps sessions, `leave` throws members out, `deadlines` judges what fired,
`parked_calls` holds the calls that wait, `failover` takes over, `evolve` folds the events. Rules
are cited by the id under which they are tested (K-A1 to K-L16: what Kafka does; S1 to S23: what
keeps it safe); the stories tell them in prose.
"""
