"""The cluster's own: topics, settings, ceilings, the table of requests; and their fold."""
