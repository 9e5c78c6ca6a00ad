"""The gRPC services of a node, a file each, and their callers, errors, streams and pages."""
