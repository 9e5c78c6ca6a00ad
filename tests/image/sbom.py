"""`./dev sbom`: list what the image installs, as a CycloneDX 1.6 document in JSON.

    ./dev sbom [FILE]             default: dist/holdfast-VERSION.cdx.json

Versions are those of deploy/docker/constraints.txt; licences and who requires whom are read from
what is installed here. The same packages give the same bytes: there is no time in it.
"""

from __future__ import annotations

import json
import sys
import uuid
from importlib.metadata import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

from image.pins import OURS, brought_by, needed, normal, pins
from tidy.repository import ROOT, pyproject

if TYPE_CHECKING:
    from collections.abc import Sequence

    from packaging.requirements import Requirement

WANTED: Final = f"{OURS}[tokens]"
_CLASSIFIER: Final = "License :: OSI Approved :: "


def main(arguments: Sequence[str]) -> int:
    """Write the document, and say where."""
    version = pyproject(ROOT)["project"]["version"]
    file = Path(arguments[0]) if arguments else ROOT / "dist" / f"{OURS}-{version}.cdx.json"
    made = document(needed(WANTED), {**pins(), OURS: version})
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(made, indent=2) + "\n")
    print(f"{file}: {len(made['components'])} packages beside {OURS} {version}")
    return 0


def document(asked: dict[str, list[Requirement]], versions: dict[str, str]) -> dict[str, Any]:
    """Make the document of these packages; raises KeyError for one without a version."""
    parts = {name: _component(name, versions[name]) for name in sorted(asked)}
    own = parts.pop(OURS)
    depends = [
        {"ref": _purl(name, versions[name]), "dependsOn": _below(requirements, versions)}
        for name, requirements in sorted(asked.items())
    ]
    content = {
        "metadata": {"component": {**own, "type": "application"}},
        "components": list(parts.values()),
        "dependencies": depends,
    }
    number = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(content, sort_keys=True))
    head = {"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1}
    return {**head, "serialNumber": f"urn:uuid:{number}", **content}


def _below(requirements: list[Requirement], versions: dict[str, str]) -> list[str]:
    """Name what a package requires, whoever asks for it; an extra of itself is itself."""
    names = {normal(each.name) for asked in requirements for each in brought_by(asked)}
    own = normal(requirements[0].name)
    return sorted(_purl(name, versions[name]) for name in names - {own})


def _purl(name: str, version: str) -> str:
    return f"pkg:pypi/{name}@{version}"


def _component(name: str, version: str) -> dict[str, Any]:
    purl = _purl(name, version)
    part = {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}
    licences = _licences(name)
    return {**part, "licenses": licences} if licences else part


def _licences(name: str) -> list[dict[str, Any]]:
    """Return what a package says of its licence: an SPDX expression, or else a name."""
    told = metadata(name)
    free = "".join(told.get_all("License") or ()).strip()
    for expression in (*(told.get_all("License-Expression") or ()), free):
        try:
            if expression:
                return [{"expression": str(canonicalize_license_expression(expression))}]
        except InvalidLicenseExpression:
            continue
    classified = [
        each.removeprefix(_CLASSIFIER)
        for each in told.get_all("Classifier") or ()
        if each.startswith(_CLASSIFIER)
    ]
    names = classified or free.splitlines()[:1]
    return [{"license": {"name": each}} for each in names]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
