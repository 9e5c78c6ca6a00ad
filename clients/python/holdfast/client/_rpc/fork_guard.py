"""Refuse objects in a forked process: a fork copies a member, but not its membership.

The child of `os.fork()` has the objects of its parent, but neither its threads nor its connections.
A copied member would be a second owner. So each object remembers its process, and is refused in
another one. The process id is not used: it costs a system call a check.
"""

from __future__ import annotations

import os


class _Process:
    """This process; another object after each fork."""


class _Current:
    """The process in which this code runs."""

    def __init__(self) -> None:
        self.process = _Process()
        self.is_child = False

    def forked(self) -> None:
        """Note that this process is the child of a fork."""
        self.process, self.is_child = _Process(), True


_CURRENT = _Current()
if hasattr(os, "register_at_fork"):  # systems without fork need no guard
    os.register_at_fork(after_in_child=_CURRENT.forked)


def this_process() -> object:
    """Return a mark of this process for `is_this_process`."""
    return _CURRENT.process


def is_this_process(process: object) -> bool:
    """Return whether a mark is that of the running process."""
    return process is _CURRENT.process


def is_forked_child() -> bool:
    """Return whether this process was forked after the client was imported."""
    return _CURRENT.is_child


def check_process(process: object, what: str) -> None:
    """Raise RuntimeError in a process that only has a copy of the object."""
    if process is not _CURRENT.process:
        raise RuntimeError(
            f"This {what} belongs to the process that made it, and this process was forked from "
            f"that one: nothing is owned here, and no call is sent. Make a {what} of its own in "
            "the child, best before the parent makes one, or start the child with spawn."
        )
