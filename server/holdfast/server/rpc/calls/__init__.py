"""The kinds of calls that members make, each with its way from a request to a response."""
