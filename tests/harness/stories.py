"""Stories: rules told as text, run as tests, in the form of datadriven tests.

A story is a text file: prose (lines that begin with `#`), then commands, a line of four dashes,
and what the commands bring about. A block ends at an empty line after its output. `run` compares;
`rewritten` puts in what happens now, for people to read before they keep it. Knows no command.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

DASHES = "----"

Interpret = Callable[[str], list[str]]
"""Carries out one command line and gives the lines of its output."""


class Block(NamedTuple):
    """Some prose, some commands, and the output that the story tells."""

    line: int
    prose: list[str]
    commands: list[str]
    output: list[str]


def blocks(text: str) -> Iterator[Block]:
    """The blocks of a story; raise ValueError, with the line, for one that is malformed."""
    prose: list[str] = []
    commands: list[str] = []
    lines = enumerate(text.splitlines(), start=1)
    for number, line in lines:
        if line.startswith("#") or not line:
            if commands:
                raise ValueError(f"line {number}: commands without {DASHES} and output")
            prose.append(line)
        elif line != DASHES:
            commands.append(line)
        else:
            output = []
            for _, told in lines:
                if not told:
                    break
                output.append(told)
            yield Block(number, prose, commands, output)
            prose, commands = [], []
    if commands:
        raise ValueError(f"the last commands have no {DASHES} and output")


def differences(text: str, interpret: Interpret) -> list[str]:
    """Where what happens is not what the story tells; empty if all is as told."""
    found = []
    for block in blocks(text):
        happened = _carry_out(block, interpret)
        if happened != block.output:
            told = "\n  ".join(block.output)
            now = "\n  ".join(happened)
            commands = "\n  ".join(block.commands)
            found.append(
                f"line {block.line}:\n  {commands}\nis told to give\n  {told}\nbut gives\n  {now}"
            )
    return found


def rewritten(text: str, interpret: Interpret) -> str:
    """The story with what happens now as its output."""
    lines: list[str] = []
    for block in blocks(text):
        lines += [*block.prose, *block.commands, DASHES, *_carry_out(block, interpret), ""]
    return "\n".join(lines)


def _carry_out(block: Block, interpret: Interpret) -> list[str]:
    return [line for command in block.commands for line in interpret(command)] or ["nothing"]
