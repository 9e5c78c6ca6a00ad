"""Which process an object was made in: a fork copies a member, and not its membership.

The child of `os.fork()` has the objects of its parent, but neither its threads nor its connections.
A copied member that believed to own would be a second owner. So each object remembers its process,
and is refused in another one. No look at the process id: that costs a system call a check.
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
        """This is the child."""
        self.process, self.is_child = _Process(), True


_CURRENT = _Current()
if hasattr(os, "register_at_fork"):  # where there is no fork, there is none to reckon with
    os.register_at_fork(after_in_child=_CURRENT.forked)


def this_process() -> object:
    """A mark of this process: keep it, and ask `is_this_process` later."""
    return _CURRENT.process


def is_this_process(process: object) -> bool:
    """Whether that is the process in which this runs."""
    return process is _CURRENT.process


def is_forked_child() -> bool:
    """Whether this process came about by a fork after the client was imported."""
    return _CURRENT.is_child


def check_process(process: object, what: str) -> None:
    """Raises RuntimeError in a process that only has a copy."""
    if process is not _CURRENT.process:
        raise RuntimeError(
            f"This {what} belongs to the process that made it, and this process was forked from "
            f"that one: nothing is owned here, and no call is sent. Make a {what} of its own in "
            "the child, best before the parent makes one, or start the child with spawn."
        )
