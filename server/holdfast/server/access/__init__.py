"""Who may call what: the table of calls, the rights of principals, and the gate that asks both."""
