"""Addresses of archives that are not on a disk of this host: each is read through fsspec.

What a store raises becomes one of three: FileNotFoundError, WrongUse, or NotReached, which says
nothing of the log. fsspec comes with an extra of its own, and so is loaded by the first URL; the
package behind a scheme (s3fs, gcsfs, adlfs) is the user's to install. Knows addresses and files, no
segments.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from holdfast.coordinator.model.text import truncate
from holdfast.replay.findings import CannotCheck, WrongUse

FLAT: Final = frozenset(
    {"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "oci", "oss", "r2", "memory"}
)
"""Schemes of object stores: an object is seen whole or not at all, and folders are only names."""

TASK_FETCHES: Final = 256
"""How many files one task fetches that has little to do with each."""
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")


class NotReached(CannotCheck):
    """A store does not answer, or refuses. It is an exception of its own for what workers raise."""


class Opened(NamedTuple):
    """A store, and what it calls an address."""

    store: Any
    name: str


def is_url(address: str) -> bool:
    """Return whether an address is a URL, and no path."""
    return _SCHEME.match(address) is not None


def folder_of(address: str) -> str:
    """Return the address of the folder that a file is in."""
    return address.rpartition("/")[0]


def scheme_of(url: str) -> str:
    """Return the scheme of a URL."""
    found = _SCHEME.match(url)
    return found[1].lower() if found else ""


def refuse_unclear(url: str) -> None:
    """Raise WrongUse for a URL of which the addresses of files within cannot be made.

    Also for one with a password: it would stand in each finding.
    """
    if "://" in url.partition("::")[2]:
        raise WrongUse(f"{truncate(url)} is a chain of URLs: give the plain URL of the folder")
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise WrongUse(f"{truncate(url)} is no URL: {error}") from error
    if parts.password is not None:
        shown = f"{parts.scheme}://{parts.hostname}{parts.path}"
        raise WrongUse(
            f"the URL of {truncate(shown)} has a password in it, and would be shown: keep it where "
            "fsspec looks for settings (~/.config/fsspec, FSSPEC_… variables)"
        )
    if parts.query or parts.fragment or {".", ".."} & set(parts.path.split("/")):
        raise WrongUse(
            f"{truncate(url)} is no URL of a folder: give one without a query, # and dots as names"
        )


def opened(url: str) -> Opened:
    """Find the store of a URL; a path is one as well, on this host.

    Raises WrongUse, NotReached; ModuleNotFoundError without fsspec.
    """
    from fsspec import filesystem  # noqa: PLC0415 - of an extra, and only URLs need it
    from fsspec.core import url_to_fs  # noqa: PLC0415 - as above

    if not is_url(url):
        return Opened(filesystem("file"), str(Path(url).absolute()))
    refuse_unclear(url)
    try:
        with reached(url):
            store, name = url_to_fs(url)
    except NotReached as error:
        cause = error.__cause__
        if isinstance(cause, ImportError):
            raise WrongUse(
                f"{truncate(url)} needs a package that is not installed: {cause}. No extra of "
                "Holdfast brings it; install it beside fsspec"
            ) from cause
        if isinstance(cause, ValueError):
            raise WrongUse(f"{truncate(url)} is no URL that fsspec knows: {cause}") from cause
        raise
    return Opened(store, str(name).rstrip("/"))


@contextmanager
def reached(url: str, done: str = "read") -> Iterator[None]:
    """Raise NotReached for whatever a store raises in the body, but for FileNotFoundError.

    Stores raise exceptions of their own, of many packages. `done`: what could not be done.
    """
    try:
        yield
    except FileNotFoundError as error:
        raise FileNotFoundError(f"there is nothing at {url}") from error
    except (CannotCheck, WrongUse):
        raise
    except PermissionError as error:
        raise NotReached(f"{url} may not be {done}: {_said(error)}") from error
    except Exception as error:
        why = os.strerror(errno.ENOSPC) if _is_full(error) else _said(error)
        raise NotReached(f"{url} cannot be {done}: {why}") from error


def _is_full(error: Exception) -> bool:
    return isinstance(error, OSError) and error.errno == errno.ENOSPC


def _said(error: Exception) -> str:
    """Return in one line what an exception says, without the address that is told anyway."""
    text = getattr(error, "strerror", None) or str(error)
    return truncate(" ".join(str(text).split())) or type(error).__name__


def fetch(url: str, to: Path) -> None:
    """Copy one file to the disk. Raises FileNotFoundError, NotReached."""
    store, name = opened(url)
    with reached(url):
        store.get_file(name, str(to))


@contextmanager
def local_file(address: str) -> Iterator[str]:
    """Give the path of a file to read: a path as it is, of a URL that of a copy for the moment.

    So a reader meets only errors of the file's content; those of the store came before.
    """
    if not is_url(address):
        yield address
        return
    with TemporaryDirectory(prefix="holdfast-") as folder:
        copy = Path(folder) / address.rpartition("/")[2]
        fetch(address, copy)
        yield str(copy)
