"""The cluster that is broken: its processes, the links between them, one of our own."""
