"""The classic protocol (KIP-345 static members included), one module a call or a moment.

`join` and `rejoin` let members in, `rebalance` opens and closes join phases, `sync` gives out the
assignment, `heartbeat` renews sessions, `leave` removes members, `deadlines` judges what fired,
`parked_calls` keeps the calls that wait, `failover` takes over, `evolve` folds the events. Rules
are cited by the id under which they are tested (K-A1 to K-L16: what Kafka does; S1 to S23: what
keeps it safe); the stories tell them in prose.
"""
