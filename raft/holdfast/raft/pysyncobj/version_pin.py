"""Refuses to run on any PySyncObj but the one that was audited (docs/adr/0001).

The overlay replaces private methods, so a release that moves one line could disarm it silently:
the version and the SHA-256 of `syncobj.py` must be the ones that every test here ran on.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import pysyncobj.syncobj
from pysyncobj.version import VERSION

from holdfast.raft.api import EngineStopped

PINNED_VERSION = "0.3.17"
PINNED_SHA256 = "e8bdf06797085d734df86e24ab4802fe87893dff77268565ec036f7ad4a1cfe4"


def check_pin(path: Path | None = None, version: str = VERSION) -> None:
    """Raise EngineStopped unless the installed engine is byte for byte the audited one."""
    source = path or Path(pysyncobj.syncobj.__file__)
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    if version == PINNED_VERSION and digest == PINNED_SHA256:
        return
    msg = (
        f"{source} is not the audited PySyncObj {PINNED_VERSION} (version {version}, SHA-256 "
        f"{digest[:16]}..., expected {PINNED_SHA256[:16]}...); the safety overlay would not hold. "
        f"Install it again: pip install --force-reinstall pysyncobj=={PINNED_VERSION}"
    )
    raise EngineStopped(msg)
