"""One node as a process: put together, served until a signal, its logs and limits."""
