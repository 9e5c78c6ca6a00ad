"""The replicated log: PySyncObj made safe, and the thread that ticks it."""
