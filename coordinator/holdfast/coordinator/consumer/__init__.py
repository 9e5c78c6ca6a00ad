"""The heartbeat protocol (KIP-848): one call, the service assigns, nobody stops.

Imports nothing of another type of group. What a member does is one `ConsumerGroupHeartbeat`:
`heartbeat` takes it, `subscription` notes what it says of itself, `target` computes who is to own
what, `reconciliation` moves the member towards it, `answers` tells it.
"""
