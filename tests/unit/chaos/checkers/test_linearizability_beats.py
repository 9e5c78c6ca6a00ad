"""INV-7: answers to heartbeats, with what they assign."""

from __future__ import annotations

from unit.chaos.scribe import settled


def test_inv_7_an_answer_that_assigns_what_the_log_does_not_is_found() -> None:
    """So is a token that no entry has given."""
    s, token = settled()
    s.beat("w1", "a", 2, grants=[["t", 0, token], ["t", 1, token]])
    assert s.judged("I7").violations == []

    s.beat("w1", "a", 2, grants=[["t", 0, token], ["t", 2, token]])

    assert len(s.judged("I7").violations) == 1
