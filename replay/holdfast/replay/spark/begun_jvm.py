"""Leave no JVM behind where its start is interrupted.

Spark waits for a file in which the JVM tells its port; interrupted, it removes the folder of that
file. A JVM that comes to write it then fails, and yet listens for ever: what reads its end is not
there yet. Knows Spark's way to start a JVM, and nothing that is done with one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from subprocess import Popen
from typing import Any, Final

from pyspark import SparkContext, java_gateway

POPEN: Final = "Popen"
"""The name by which Spark starts a process."""


@contextmanager
def begun_jvm() -> Iterator[None]:
    """Start a JVM in the body; if that ends without one that Spark knows, end what was begun."""
    begun: list[Popen[Any]] = []

    class Noted(Popen[Any]):
        def __init__(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401 - all of them
            super().__init__(*arguments, **options)
            begun.append(self)

    names = vars(java_gateway)  # there is no other way to hear of it
    before, names[POPEN] = names[POPEN], Noted
    try:
        yield
    finally:
        names[POPEN] = before
        if SparkContext._gateway is None:  # noqa: SLF001 - it has no public name
            for process in begun:
                process.kill()
                process.wait()
