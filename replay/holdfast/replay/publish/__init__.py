"""Copy sealed segments to a folder or an object store, from which replay reads them. No Spark."""
