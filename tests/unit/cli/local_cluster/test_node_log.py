"""A start that waits in vain quotes what each node warned of last, in either form of the log."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

from holdfast.cli.local_cluster.node_log import NodeLog
from holdfast.server.process.logs import JsonForm, TextForm

if TYPE_CHECKING:
    from pathlib import Path

FORMS = [TextForm("node-1"), JsonForm("node-1")]
SENTENCE = 'alarm: "a\\b" is = c: examine it'


def line(form: logging.Formatter, level: int, message: str) -> bytes:
    record = logging.LogRecord("holdfast.x", level, "x.py", 1, message, None, None)
    return (form.format(record) + "\n").encode()


@pytest.mark.parametrize("form", FORMS)
def test_the_last_warning_of_this_start_is_told(tmp_path: Path, form: logging.Formatter) -> None:
    log = NodeLog(tmp_path)
    assert log.last_warning() == ""
    assert log.last_words() == "it left no word"
    with log.begin() as out:
        out.write(line(form, logging.WARNING, "of an earlier start"))
    with log.begin() as out:
        out.write(line(form, logging.INFO, "listens"))
        assert log.last_warning() == ""
        out.write(line(form, logging.WARNING, "first") + line(form, logging.CRITICAL, SENTENCE))
        out.write(b"[1, 2]\n" + line(form, logging.INFO, "level=warning") + b"holdfast: ended\n")

    assert log.last_warning() == SENTENCE
    assert log.last_words() == "ended"
