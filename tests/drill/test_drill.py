"""The operators' pages can be followed as they are written; and the drill would see if not."""

from __future__ import annotations

from pathlib import Path

import pytest

from drill.pages import Block, Page, blocks, pages
from drill.run import PAGE_SECONDS_MAX, told
from drill.shell import run

SECONDS = 30.0
LONGEST = ("/history.md", "/backup.md", "/nodes.md")
"""Pages that begin before all others: one that began last would end alone."""


def longest_first() -> list[Page]:
    return sorted(pages(), key=lambda page: not page.name.endswith(LONGEST))


@pytest.mark.cluster
@pytest.mark.parametrize("page", longest_first(), ids=lambda page: page.name)
def test_a_page_can_be_followed_as_it_is_written(page: Page, tmp_path: Path) -> None:
    ended = run(page.run, tmp_path / "page", PAGE_SECONDS_MAX)

    assert ended.failed is None, told(page, ended)


def test_only_shell_blocks_are_run_and_a_reason_leaves_one_out() -> None:
    page = (
        "Words\n\n```sh\none\n```\n\n```toml\nkey = 1\n```\n"
        "<!-- not drilled: it needs root -->\n```sh\ntwo\n```\n    indented\n"
    )

    assert [*blocks(page)] == [Block(4, "one\n"), Block(12, "two\n", "it needs root")]


def test_a_block_of_a_list_is_run_without_its_margin() -> None:
    page = "1. Words:\n\n   ```sh\n   one\n     two\n   ```\n2. More\n"

    assert [*blocks(page)] == [Block(4, "one\n  two\n")]


def test_blocks_share_a_shell_and_a_folder(tmp_path: Path) -> None:
    """As for a reader: what one block sets or writes is there in the next."""
    both = [
        Block(1, "name=value; echo text > file\n"),
        Block(2, 'test "$name" = value -a -s file\n'),
    ]

    assert run(both, tmp_path / "p", SECONDS).failed is None


@pytest.mark.parametrize("wrong", ["false", "false | true", "echo $not_set", "no-such-command"])
def test_a_command_that_fails_ends_the_page_in_its_block(tmp_path: Path, wrong: str) -> None:
    """A step that is missing or wrong must not be passed over, wherever it stands in a block."""
    three = [Block(1, "true\n"), Block(5, f"echo before\n{wrong}\ntrue\n"), Block(9, "true\n")]
    ended = run(three, tmp_path / "p", SECONDS)

    assert ended.failed == three[1]
    assert "before" in ended.output


def test_a_page_that_hangs_has_failed_and_leaves_no_process(tmp_path: Path) -> None:
    started = Block(1, "sleep 1000 & echo $! > pid\n")
    hangs = Block(2, "cat pid; wait\n")
    ended = run([started, hangs], tmp_path / "p", seconds_max=3.0)
    pid = int((tmp_path / "p" / "work" / "pid").read_text())

    assert ended.failed == hangs
    assert not _runs(pid)


def _runs(pid: int) -> bool:
    try:
        return bool(Path(f"/proc/{pid}/cmdline").read_bytes())
    except OSError:
        return False
