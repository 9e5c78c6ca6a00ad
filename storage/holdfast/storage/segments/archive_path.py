"""What readers of a folder of segments ask of a path: it need not be on a disk of this host.

`pathlib.Path` has all of it; whoever reads an archive behind a URL gives something that has it as
well. Functions that only read take any such path; those that write take a `Path`. Names only: it
opens nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from os import stat_result
from typing import BinaryIO, Literal, Protocol, Self, TypeVar


class ArchivePath(Protocol):
    """A file or a folder of an archive, there or not. Methods mean what they mean of a `Path`."""

    @property
    def name(self) -> str:
        """The last part."""

    @property
    def stem(self) -> str:
        """The last part without its suffix."""

    @property
    def suffix(self) -> str:
        """The end of the last part, from its last dot on."""

    @property
    def parent(self) -> Self:
        """The folder that it is in."""

    def __truediv__(self, name: str, /) -> Self:
        """Return an entry of this folder."""

    def __lt__(self, other: Self, /) -> bool:
        """Sort by address."""

    def iterdir(self) -> Iterator[Self]:
        """Yield the entries of this folder. Raises OSError."""

    def exists(self) -> bool:
        """Return whether it is there; of a link, whether what it leads to is."""

    def is_dir(self) -> bool:
        """Return whether it is a folder, or a link to one."""

    def is_symlink(self) -> bool:
        """Return whether it is a link."""

    def readlink(self) -> Self:
        """Return where a link leads. Raises OSError."""

    def lstat(self) -> stat_result:
        """Return its kind and size, of a link those of the link. Raises OSError."""

    def stat(self) -> stat_result:
        """Return its kind and size. Raises OSError."""

    def read_bytes(self) -> bytes:
        """Return the content of a file. Raises OSError."""

    def open(self, mode: Literal["rb"], /) -> BinaryIO:
        """Open a file to read it. Raises OSError."""


AnyPath = TypeVar("AnyPath", bound=ArchivePath)
"""The kind of paths that a caller has, so that he gets back the same."""
