"""What the checkers share: calls, the log as groups, registers, and the search for an order.

Finds in a history what several invariants ask about. Knows no invariant, no client, no process and
no clock, and folds the log by a small fold of its own, since the coordinator's is what is judged.
"""
