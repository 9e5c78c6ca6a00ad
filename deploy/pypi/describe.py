"""Describes the package for an index: its README without links that lead nowhere there, and URLs.

A hook of the build (hatchling). An index shows the README outside the repository, so a link to a
file must name the repository. Where that is, is said once, as `repository` under
`[tool.hatch.metadata.hooks.custom]` in pyproject.toml; as long as it is not, such links become
plain text, and the package has no URLs.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"(?<!!)\[([^\]]*)\]\((?!https?://|mailto:)([^)\s]+)\)")
CODE = re.compile(r"(^```.*?^```|^(?: {4}|\t).*?$|`[^`\n]*`)", re.DOTALL | re.MULTILINE)


class Description(MetadataHookInterface):
    """Fills in `readme` and `urls`, which pyproject.toml declares to be dynamic."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Fill them in."""
        repository = str(self.config.get("repository", "")).rstrip("/")
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        described = described_for_index(text, repository, f"v{metadata['version']}")
        metadata["readme"] = {"content-type": "text/markdown", "text": described}
        metadata["urls"] = urls(repository)


def described_for_index(text: str, repository: str, version: str) -> str:
    """Lead links to files into the repository at a version; without one, make them plain text."""

    def absolute(link: re.Match[str]) -> str:
        shown, target = link.groups()
        if not repository:
            return shown
        if target.startswith("#"):
            return f"[{shown}]({repository}{target})"
        return f"[{shown}]({repository}/blob/{version}/{target})"

    parts = CODE.split(text)  # every second one is code, in which brackets mean other things
    return "".join(part if at % 2 else LINK.sub(absolute, part) for at, part in enumerate(parts))


def urls(repository: str) -> dict[str, str]:
    """Name what an index links to; nothing without a repository."""
    if not repository:
        return {}
    changes = f"{repository}/blob/HEAD/CHANGELOG.md"
    return {"Repository": repository, "Changelog": changes, "Issues": f"{repository}/issues"}
