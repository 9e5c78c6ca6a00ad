"""Something that goes on in a thread of its own as long as a body runs. Knows no Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread


@contextmanager
def meanwhile(name: str, work: Callable[[Callable[[float], bool]], object]) -> Iterator[None]:
    """Run `work` during the body. It gets a function that waits, and tells whether it is over."""
    over = Event()
    thread = Thread(target=work, args=(over.wait,), name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
