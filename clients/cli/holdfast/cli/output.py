"""Standard output that says why it could not be written: a full disk, or nobody opened it.

Standard library alone, as `entry`, which uses it. Below all text, so that it holds for what click
prints, too. A closed pipe (`| head`) stays what it is: click ends the command quietly.
"""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class CannotWriteError(Exception):
    """The text is the reason, for people."""


def check_writes() -> None:
    """Make failed writes to standard output CannotWriteError, also where there is none (`>&-`).

    Python has no stream then, and click drops silently what is printed.
    """
    out = sys.__stdout__
    if out is None:
        sys.stdout = io.TextIOWrapper(io.BufferedWriter(_Closed()), write_through=True)
    elif sys.stdout is out:
        sys.stdout = io.TextIOWrapper(
            io.BufferedWriter(_Checked(out.fileno(), "w", closefd=False)),
            encoding=out.encoding,
            errors=out.errors,
            line_buffering=out.line_buffering,
            write_through=out.write_through,
        )


def drop() -> None:
    """Drop what could not be written: the interpreter would try, and complain, once more."""
    sys.stdout = io.TextIOWrapper(io.BytesIO())


class _Checked(io.FileIO):
    def write(self, data: ReadableBuffer, /) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise CannotWriteError(error.strerror) from error


class _Closed(io.RawIOBase):
    def writable(self) -> bool:
        return True

    def write(self, data: ReadableBuffer, /) -> int:
        del data
        raise CannotWriteError("standard output is closed")
