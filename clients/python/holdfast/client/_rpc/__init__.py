"""How a client reaches a cluster: channels, the walk to the leading node, calls and streams.

Knows the contract's messages and what a status means, and nothing of members: what a call is for is
for the session and the shells to know.
"""
