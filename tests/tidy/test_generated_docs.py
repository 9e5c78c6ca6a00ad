"""Pages that are made from the code are current, and every error has its page."""

import re
from pathlib import Path

import pytest

from docs.blocks import UnknownBlock, pages, renewed
from docs.contents import make
from holdfast.server.translate.refusals import TABLE, Coded
from holdfast.v1.errors_pb2 import ErrorCode
from tidy.repository import ROOT, plant

ERRORS = ROOT / "docs" / "errors"
PARTS = ["## Who gets it", "## Why", "## What to do"]


def names() -> set[str]:
    """Return all codes of the contract but NONE, without their prefix."""
    return {name.removeprefix("ERROR_CODE_") for name in dict(ErrorCode.items())} - {"NONE"}


def undocumented(folder: Path) -> list[str]:
    """A code has a page, or the index lists it as kept for later; what the service says has one."""
    have = {path.stem for path in folder.glob("*.md")}
    later = set(re.findall(r"[A-Z]+(?:_[A-Z]+)+", _later(folder)))
    said = {
        ErrorCode.Name(row.code).removeprefix("ERROR_CODE_")
        if isinstance(row, Coded)
        else row.status.name
        for row in TABLE.values()
    }
    return sorted((names() - have - later) | (said - have) | (have & later))


def _later(folder: Path) -> str:
    return (folder / "README.md").read_text().partition("## Kept for later")[2]


def incomplete(folder: Path) -> list[str]:
    """A page tells who gets the error, why, and what to do; the index leads to it."""
    index = (folder / "README.md").read_text()
    found = []
    for path in sorted(folder.glob("*.md")):
        if path.name != "README.md":
            text = path.read_text()
            found += [f"{path.name}: {part} is missing" for part in PARTS if part not in text]
            found += [f"{path.name} is not in the index"] * (f"({path.name})" not in index)
    return found


def test_every_error_has_its_page() -> None:
    assert undocumented(ERRORS) == []
    assert incomplete(ERRORS) == []


def test_generated_parts_are_current() -> None:
    """`./dev docs` renews them: diagrams of `transitions`, sentences of the refusals."""
    stale = [page.path.name for page in pages(ROOT / "docs", make) if page.text != page.renewed]
    assert stale == [], "run ./dev docs"


def test_a_missing_page_is_found(tmp_path: Path) -> None:
    """The check can fail."""
    index = "# Errors\n\n## Kept for later\n\nFENCED_INSTANCE_ID\n"
    page = "# NOT_COORDINATOR\n\n## Why\n"
    plant(tmp_path, {"README.md": index, "NOT_COORDINATOR.md": page})
    missing = undocumented(tmp_path)
    assert "ILLEGAL_GENERATION" in missing
    assert "NOT_COORDINATOR" not in missing
    assert "FENCED_INSTANCE_ID" in missing, "the service says it, so it needs a page"
    assert incomplete(tmp_path) == [
        "NOT_COORDINATOR.md: ## Who gets it is missing",
        "NOT_COORDINATOR.md: ## What to do is missing",
        "NOT_COORDINATOR.md is not in the index",
    ]


def test_a_stale_part_is_found_and_only_it_is_renewed(tmp_path: Path) -> None:
    """The words around a block are a person's."""
    old = "before\n<!-- begin: a -->\nold\n<!-- end: a -->\nafter\n"
    plant(tmp_path, {"page.md": old})
    (page,) = pages(tmp_path, {"a": "new"}.__getitem__)
    assert page.renewed == "before\n<!-- begin: a -->\nnew\n<!-- end: a -->\nafter\n"
    nothing: dict[str, str] = {}
    assert renewed("no block", nothing.__getitem__) == "no block"
    with pytest.raises(UnknownBlock, match=r"page\.md: nobody makes a block 'a'"):
        list(pages(tmp_path, nothing.__getitem__))
