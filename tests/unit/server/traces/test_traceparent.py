"""`traceparent`, by the examples and the rules of W3C's Trace Context (version 00)."""

from __future__ import annotations

import pytest

from holdfast.server.traces.traceparent import KEY, Parent, parent_in, parsed

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
"""As in the standard's examples."""
SAID = f"00-{TRACE}-{SPAN}-01"
READ = Parent(0x4BF92F3577B34DA6A3CE929D0E0E4736, 0x00F067AA0BA902B7, sampled=True)


def test_the_standards_example() -> None:
    assert parsed(SAID) == READ


def test_the_last_bit_of_the_flags_says_that_the_caller_keeps_the_trace() -> None:
    assert parsed(f"00-{TRACE}-{SPAN}-00") == READ._replace(sampled=False)
    assert parsed(f"00-{TRACE}-{SPAN}-03") == READ


def test_a_later_version_is_read_as_far_as_it_is_known() -> None:
    assert parsed(f"01-{TRACE}-{SPAN}-01-more") == READ


@pytest.mark.parametrize(
    "text",
    [
        "",
        "00",
        f"00-{TRACE}-{SPAN}",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-01-more",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE}-{SPAN}-01\n",
        f"00-{TRACE[:-1]}-{SPAN}-01",
        "00-" + "9" * 100_000,
    ],
)
def test_what_the_standard_rules_out_counts_as_nothing(text: str) -> None:
    """A caller's defect in tracing must not refuse its call."""
    assert parsed(text) is None


def test_it_is_found_among_the_metadata() -> None:
    metadata = (("user-agent", "x"), ("thing-bin", b"\xff"), (KEY, SAID))

    assert parent_in(metadata) == READ
    assert parent_in((("user-agent", "x"),)) is None
    assert parent_in(None) is None
