"""The pages of errors tell what the code does: of each code that the heartbeat protocol can answer.

Which codes these are is read from the code: a rejection that its rooms name, by the table of
refusals. So a new one without a page that tells what the client does of itself fails here.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from holdfast.client.errors import HoldfastError, from_code
from holdfast.coordinator.consumer import validation as heartbeats
from holdfast.coordinator.consumer.client_side import validation as assignors
from holdfast.coordinator.consumer.targets.subscription import REGEXES_MAX
from holdfast.coordinator.consumer.usage import MEMBER_IN_POOL
from holdfast.server.translate.refusals import TABLE, Coded
from holdfast.v1.errors_pb2 import ErrorCode
from tidy.repository import ROOT, plant

ERRORS = Path("docs", "errors")
CORE = Path("coordinator", "holdfast", "coordinator")
SERVER = Path("server", "holdfast", "server")
ROOMS = (
    *(CORE / room for room in ("consumer", "groups", "offsets")),
    *(CORE / "kernel" / name for name in ("conversion.py", "quarantine.py")),
    *(CORE / "model" / "levels.py", CORE / "cluster" / "ceilings.py"),
    *(SERVER / "rpc" / "calls" / "assignments.py", SERVER / "translate" / "consumer_views.py"),
)
"""Where it is decided what a call to a group of the heartbeat protocol is refused with."""
REJECTIONS = "holdfast.coordinator.model.rejections"
CLIENT = "## What the client does"
CODES = {name.removeprefix("ERROR_CODE_"): number for name, number in ErrorCode.items()}
HEAD = re.compile(
    r"^Error code (-?\d+); `holdfast\.client` raises (?:`(\w+)`|nothing)", re.MULTILINE
)
NAME = re.compile(r"\b[A-Z]+(?:_[A-Z]+)+\b")


def answered(root: Path) -> set[str]:
    """Name the codes that the rooms of the heartbeat protocol can answer."""
    rows = {rejection.__name__: row for rejection, row in TABLE.items()}
    found = {rows[name] for name in _rejections(root) if name in rows}
    return {_name(row.code) for row in found if isinstance(row, Coded)}


def _rejections(root: Path) -> Iterator[str]:
    for room in ROOMS:
        place = root / room
        for path in sorted(place.rglob("*.py")) if place.is_dir() else [place] * place.exists():
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ImportFrom) and node.module == REJECTIONS:
                    yield from (each.name for each in node.names)


def _name(code: int) -> str:
    return ErrorCode.Name(code).removeprefix("ERROR_CODE_")  # type: ignore[arg-type]  # of the contract


def untold(root: Path) -> list[str]:
    """A code of the heartbeat protocol has a page, which tells what the client does of itself."""
    found = []
    for name in sorted(answered(root)):
        page = root / ERRORS / f"{name}.md"
        text = page.read_text() if page.exists() else ""
        if not text:
            found.append(f"{name} has no page")
        elif not re.search(rf"^{CLIENT}\n\n[^#\n]", text, re.MULTILINE):
            found.append(f"{page.name} does not tell what the client does")
    return found


def untrue(root: Path) -> list[str]:
    """A page is of a code or status that exists, names no other, and knows number and exception."""
    statuses = {status.name for status in grpc.StatusCode}
    found = []
    for page in sorted((root / ERRORS).glob("*.md")):
        text = page.read_text()
        named = {*NAME.findall(text), page.stem} - {"README"}
        strange = sorted(named - CODES.keys() - statuses)
        found += [f"{page.name}: there is no {name}" for name in strange]
        if page.stem in CODES and _head(text) != _expected(CODES[page.stem]):
            found.append(f"{page.name}: its head should say {_expected(CODES[page.stem])}")
    return found


def _head(text: str) -> tuple[int, str]:
    head = HEAD.search(text)
    return (0, "") if head is None else (int(head[1]), head[2] or "nothing")


def _expected(code: int) -> tuple[int, str]:
    if code == ErrorCode.ERROR_CODE_MEMBER_ID_REQUIRED:
        return code, "nothing"  # the member joins again by itself
    error: HoldfastError = from_code(code, subject="")  # type: ignore[arg-type]  # of the contract
    return code, type(error).__name__


def test_each_code_of_the_heartbeat_protocol_has_a_page_that_tells_what_the_client_does() -> None:
    assert {"FENCED_MEMBER_EPOCH", "UNSUPPORTED_ASSIGNOR", "GROUP_ID_NOT_FOUND"} <= answered(ROOT)

    assert untold(ROOT) == []


def test_pages_name_only_what_exists() -> None:
    assert untrue(ROOT) == []


@pytest.mark.parametrize(
    "bound",
    [
        f"`member_id` | 1 to {heartbeats.ID_MAX} bytes",
        f"classic protocol in such a group, at most {heartbeats.CLASSIC_ID_MAX} |",
        f"`instance_id` | 1 to {heartbeats.ID_MAX} of",
        f"`rack_id` | 1 to {heartbeats.ID_MAX} characters",
        f"`subscribed_topic_regex` | {heartbeats.REGEX_LENGTH_MAX:,} characters; {REGEXES_MAX} ",
        f"(`group.assignment_bytes_max` + {MEMBER_IN_POOL}) bytes",
        f"| {assignors.ASSIGNORS_MAX} of different names of 1 to {assignors.NAME_BYTES_MAX} bytes;",
        f"versions 0 to {assignors.VERSION_MAX} in order",
        f"reason 0 to {assignors.REASON_MAX};",
    ],
)
def test_the_page_of_fields_has_the_bounds_of_the_code(bound: str) -> None:
    """S7: who reads the page need not try them."""
    assert bound in (ROOT / ERRORS / "INVALID_REQUEST.md").read_text()


@pytest.mark.parametrize(
    ("page", "problem"),
    [
        ("", "STALE_MEMBER_EPOCH has no page"),
        ("# STALE_MEMBER_EPOCH\n", "STALE_MEMBER_EPOCH.md does not tell what the client does"),
        (
            f"{CLIENT}\n\n## What to do\n",
            "STALE_MEMBER_EPOCH.md does not tell what the client does",
        ),
    ],
)
def test_a_code_without_a_word_on_the_client_is_found(
    page: str, problem: str, tmp_path: Path
) -> None:
    """The check can fail."""
    module = str(CORE / "consumer" / "new" / "room.py")
    files = {module: f"from {REJECTIONS} import Rejection, StaleMemberEpoch\n"}
    if page:
        files[str(ERRORS / "STALE_MEMBER_EPOCH.md")] = page

    assert untold(plant(tmp_path, files)) == [problem]


def test_a_code_that_does_not_exist_is_found(tmp_path: Path) -> None:
    """A page that is left behind, a code that was renamed, a wrong number, a wrong exception."""
    good = "Error code 113; `holdfast.client` raises `IllegalGeneration`.\n"
    files = {
        "README.md": "FENCED_MEMBER_EPOCH and DEADLINE_EXCEEDED",
        "STALE_MEMBER_EPOCH.md": f"{good}[OLD_EPOCH](OLD_EPOCH.md)",
        "MEMBER_LOST.md": good,
        "UNRELEASED_INSTANCE_ID.md": "Error code 111; `holdfast.client` raises `Fenced`.\n",
    }
    root = plant(tmp_path, {str(ERRORS / name): text for name, text in files.items()})

    assert untrue(root) == [
        "MEMBER_LOST.md: there is no MEMBER_LOST",
        "STALE_MEMBER_EPOCH.md: there is no OLD_EPOCH",
        "UNRELEASED_INSTANCE_ID.md: its head should say (111, 'InstanceInUse')",
    ]
