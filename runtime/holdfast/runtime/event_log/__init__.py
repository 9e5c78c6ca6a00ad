"""The history of all events on this node: read, sealed into segments, fetched, checked offline."""
