"""What the image is made of: the versions in constraints.txt, and which package brings which.

Reads the file, and the metadata of what is installed here; asks no index.
"""

from __future__ import annotations

import re
from importlib.metadata import requires
from typing import Final

from packaging.requirements import Requirement

from tidy.repository import ROOT

CONSTRAINTS: Final = ROOT / "deploy" / "docker" / "constraints.txt"
OURS: Final = "holdfast"


def pins() -> dict[str, str]:
    """Return the version of every package, by its normal name."""
    return dict(re.findall(r"^([\w.-]+)==(\S+)$", CONSTRAINTS.read_text(), re.MULTILINE))


def normal(name: str) -> str:
    """Return a package's name as indexes compare it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def brought_by(asked: Requirement) -> list[Requirement]:
    """Return what a package requires on this machine, with the extras that are asked of it."""
    found = map(Requirement, requires(asked.name) or ())
    return [
        each
        for each in found
        if each.marker is None
        or any(each.marker.evaluate({"extra": extra}) for extra in (*asked.extras, ""))
    ]


def needed(wanted: str) -> dict[str, list[Requirement]]:
    """Return the packages that a requirement brings, itself included, and what each is asked."""
    found: dict[str, list[Requirement]] = {}
    waiting, seen = [Requirement(wanted)], set[str]()
    while waiting:
        asked = waiting.pop()
        found.setdefault(normal(asked.name), []).append(asked)
        if (key := f"{normal(asked.name)}{sorted(asked.extras)}") not in seen:
            seen.add(key)
            waiting += brought_by(asked)
    return found
