"""The replicated log: PySyncObj made safe, and the replica that folds what it commits."""
