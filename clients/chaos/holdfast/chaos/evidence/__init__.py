"""What the checkers share: calls, the log as groups, registers, and the search for an order."""
