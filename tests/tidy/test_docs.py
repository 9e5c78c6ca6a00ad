"""Documents: links lead somewhere, decisions are numbered, the README's command is what CI runs."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tidy.repository import ROOT, plant

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
MADE = {"build", "node_modules"}
ELSEWHERE = ("http://", "https://", "mailto:")


def documents(root: Path) -> Iterator[Path]:
    """Go through the Markdown files, but into no environment and no build folder.

    Those hold thousands of files, and what other tests make and remove while this one looks.
    """
    found = []
    for place, folders, names in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith(".") and name not in MADE]
        found += [Path(place, name) for name in names if name.endswith(".md")]
    yield from sorted(found)


def prose(path: Path) -> str:
    """Return a document's text without its code, in which brackets mean other things."""
    text = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"`[^`\n]*`", "", re.sub(r"^    .*$", "", text, flags=re.MULTILINE))


def anchors(path: Path) -> set[str]:
    """Make the anchors that code hosts give to a document's headings."""
    headings = re.findall(r"^#+ +(.+)$", path.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in headings}


def check_links(root: Path) -> list[str]:
    """A link inside the repository leads to a file that is there, and to a heading that it has."""
    found = []
    for path in documents(root):
        for target in LINK.findall(prose(path)):
            if target.startswith(ELSEWHERE):
                continue
            name, _, anchor = target.partition("#")
            file = path.parent / name if name else path
            lost = not file.exists() or (anchor and anchor not in anchors(file))
            if lost:
                found.append(f"{path.relative_to(root)}: {target} leads nowhere")
    return found


def check_decisions(root: Path) -> list[str]:
    """Decisions are numbered 0001, 0002, … and open with their number."""
    found = []
    for number, path in enumerate(sorted((root / "docs" / "adr").glob("*.md")), start=1):
        if not path.name.startswith(f"{number:04}-"):
            found.append(f"{path.name} should be number {number:04}")
        elif not path.read_text().startswith(f"# {number}. "):
            found.append(f"{path.name} should open with '# {number}. '")
    return found


def check_ci(root: Path) -> list[str]:
    """Continuous integration runs a command that the README shows, and nothing else."""
    lines = (root / ".ci" / "run").read_text().splitlines()
    commands = [line for line in lines if line and not line.startswith(("#", "set ", "cd "))]
    shown = [line.strip() for line in (root / "README.md").read_text().splitlines()]
    unknown = [command for command in commands if command not in shown]
    found = [f".ci/run: {command!r} is not in the README" for command in unknown]
    return found if commands else [".ci/run runs nothing"]


def test_ci_runs_what_the_readme_says() -> None:
    assert check_ci(ROOT) == []


@pytest.mark.parametrize("script", ["make check\n", "# ./dev test\n", "./dev test\n./more\n"])
def test_ci_that_does_something_else_is_found(script: str, tmp_path: Path) -> None:
    root = plant(tmp_path, {".ci/run": f"set -e\n{script}", "README.md": "    ./dev test\n"})

    assert len(check_ci(root)) == 1


def test_every_link_leads_somewhere() -> None:
    assert (ROOT / "README.md") in documents(ROOT)

    assert check_links(ROOT) == []


def test_decisions_are_numbered() -> None:
    assert check_decisions(ROOT) == []


@pytest.mark.parametrize("target", ["gone.md", "../outside.md", "#no-such-part", "b.md#nowhere"])
def test_a_lost_link_is_found(target: str, tmp_path: Path) -> None:
    files = {"docs/a.md": f"# A part\n\n[text]({target})\n", "docs/b.md": "# B\n"}

    assert check_links(plant(tmp_path, files)) == [f"docs/a.md: {target} leads nowhere"]


@pytest.mark.parametrize("target", ["b.md", "#a-part", "b.md#b-its-place", "https://example.org/x"])
def test_a_link_that_leads_somewhere_passes(target: str, tmp_path: Path) -> None:
    files = {"docs/a.md": f"# A part\n\n[text]({target})\n", "docs/b.md": "# B: its place\n"}

    assert check_links(plant(tmp_path, files)) == []


@pytest.mark.parametrize(
    "files",
    [{"0001-a.md": "# 1. A\n", "0003-c.md": "# 3. C\n"}, {"0001-a.md": "# A\n"}],
)
def test_a_decision_out_of_order_is_found(files: dict[str, str], tmp_path: Path) -> None:
    root = plant(tmp_path, {f"docs/adr/{name}": text for name, text in files.items()})

    assert len(check_decisions(root)) == 1
