"""The services of deploy/compose as containers: what compose.yaml says of each, without Docker.

Named volumes are folders. A folder of the image that a volume covers gives it its owner, as in
Docker. Knows only what our file uses.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

import yaml

from image.container import Container
from tidy.repository import ROOT

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from image.build import Image

FOLDER: Final = ROOT / "deploy" / "compose"


def services() -> dict[str, dict[str, Any]]:
    """Return the services, merged as YAML does."""
    found: dict[str, dict[str, Any]] = yaml.safe_load((FOLDER / "compose.yaml").read_text())
    return found["services"]


def container(
    name: str, image: Image, volumes: Path, *command: str, **environment: str
) -> Container:
    """Make the container of a service; `command` in the place of its own, if there is any."""
    service = services()[name]
    entrypoint = service.get("entrypoint")
    own = [each.replace("$$", "$") for each in service.get("command", [])]
    return Container(
        image,
        command or tuple(own),
        {**service.get("environment", {}), **environment},
        dict(_mount(each, image, volumes) for each in service["volumes"]),
        service.get("user", ""),
        None if entrypoint is None else tuple(entrypoint),
    )


def _mount(told: str, image: Image, volumes: Path) -> tuple[str, Path]:
    """Return the place in the container, and what of this machine is seen there."""
    source, place = told.removesuffix(":ro").split(":")
    if source.startswith("."):
        return place, FOLDER / source
    folder = volumes / source
    if not folder.exists():
        folder.mkdir(parents=True)
        covered = image.root / place.lstrip("/")
        if covered.is_dir():
            seen = covered.stat()
            os.chown(folder, seen.st_uid, seen.st_gid)
            folder.chmod(seen.st_mode & 0o777)
    return place, folder


def addresses(name: str) -> Mapping[str, str]:
    """Return the variables that let a node listen at the address of its name alone.

    All containers of a test share this machine's network.
    """
    return {
        "HOLDFAST_NODE_CLIENT_ADDRESS": f"{name}:7400",
        "HOLDFAST_NODE_PEER_ADDRESS": f"{name}:7500",
        "HOLDFAST_HTTP_ADDRESS": f"{name}:7600",
    }
