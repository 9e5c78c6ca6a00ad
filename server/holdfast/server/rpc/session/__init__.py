"""Session: calls of many members on one stream, many in a message, answered in any order."""
