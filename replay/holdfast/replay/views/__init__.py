"""The state as DuckDB computes it, from the files of a log: no Spark, no Java, no coordinator."""
