"""Who the nodes of the cluster are to be: what administrators ask for, and how it ended."""
