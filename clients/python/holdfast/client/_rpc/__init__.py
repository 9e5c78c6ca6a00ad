"""How a client reaches a cluster: channels, the walk to the leading node, calls and streams.

Knows the contract's messages and what a status means, but no members: the session and the shells
know what a call is for.
"""
