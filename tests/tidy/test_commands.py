"""Every `holdfast …` command that a document or a sentence of the program names is there.

With its options. A command is told apart from prose by its place: code in Markdown, and what stands
between backticks in both. After that come names of commands, as far as there are groups of them.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from holdfast.cli.main import main
from tidy.repository import ROOT, plant, sources
from tidy.test_docs import documents

WORD = re.compile(r"[a-z][a-z-]*")
FENCED = re.compile(r"^```[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
NAMED = re.compile(r"(?:^|[\s;&|(/])holdfast((?: +[^\s;&|`#]+)+)")
COMMENT = re.compile(r"(?:^|\s)#.*")
OPTION = re.compile(r"--[a-z][a-z-]+")


def named(path: Path) -> Iterator[list[str]]:
    """Go through the commands that a file names: the words after `holdfast`."""
    text = path.read_text().replace("\\\n", " ")
    spans = re.findall(r"`([^`\n]+)`", text)
    if path.suffix == ".md":
        spans += re.findall(r"^ {4,}(.+)$", text, re.MULTILINE)
        spans += [line for block in FENCED.findall(text) for line in block.splitlines()]
    for span in spans:
        for found in NAMED.findall(COMMENT.sub("", span)):
            words = found.split()
            if WORD.fullmatch(words[0]) or OPTION.fullmatch(words[0]):  # or `-u holdfast /bin/x`
                yield words


def problem(words: list[str]) -> str:
    """Say which word of a command is no command of the program, or no option of it; or nothing."""
    command: click.Command = main
    context = click.Context(main)
    rest = list(words)
    while isinstance(command, click.Group) and rest and WORD.fullmatch(rest[0]):
        try:
            found = command.get_command(context, rest[0])
        except click.UsageError:  # it is nearly one
            found = None
        if found is None:
            return f"{rest[0]!r} is no command"
        command = found
        del rest[0]
    known = {option for each in command.get_params(context) for option in each.opts}
    lost = [word for each in rest for word in OPTION.findall(each) if word not in known]
    return f"{lost[0]!r} is no option" if lost else ""


def check_commands(root: Path) -> list[str]:
    """No file names a command that is not there."""
    return [
        f"{path.relative_to(root)}: `holdfast {' '.join(words)}`: {found}"
        for path in (*documents(root), *sources(root))
        for words in named(path)
        if (found := problem(words))
    ]


def test_every_command_that_is_named_is_there() -> None:
    assert ["offsets", "commit"] in named(ROOT / "docs" / "operations" / "local-clusters.md")

    assert check_commands(ROOT) == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("docs/a.md", "Set them with `holdfast offsets set`.\n"),
        ("docs/a.md", "Text:\n\n    holdfast topics list\n"),
        ("docs/a.md", "```\nholdfast cluster status \\\n  --jason\n```\n"),
        ("clients/python/holdfast/client/x.py", 'raise X("look with `holdfast group shw`")\n'),
    ],
)
def test_a_command_that_is_not_there_is_found(name: str, text: str, tmp_path: Path) -> None:
    assert len(check_commands(plant(tmp_path, {name: text}))) == 1


@pytest.mark.parametrize(
    "text", ["`holdfast group describe G --json`\n", "    holdfast --help  # holdfast is good\n"]
)
def test_a_command_that_is_there_passes(text: str, tmp_path: Path) -> None:
    assert check_commands(plant(tmp_path, {"docs/a.md": text})) == []
