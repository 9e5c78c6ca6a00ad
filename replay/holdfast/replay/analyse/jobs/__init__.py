"""What Spark computes for an analysis beside `queries`; the values and the folds need no Spark."""
