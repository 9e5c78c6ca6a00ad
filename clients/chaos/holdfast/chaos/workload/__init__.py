"""What the clients do while the cluster is broken: members, callers, and the store outside.

Clients as users write them; they record what they see. Knows no fault and no checker.
"""
