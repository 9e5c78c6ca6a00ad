"""The clock of a node, and what falls due: deadlines, the timer that waits for them."""
