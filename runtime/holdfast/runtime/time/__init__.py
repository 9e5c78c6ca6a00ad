"""The clock of a node, its deadlines, and the timer that waits for them."""
