"""Text of callers where people read it: nothing in it is obeyed by a terminal or a page."""

from __future__ import annotations

import json
import unicodedata

import pytest

from holdfast.coordinator.model.text import OBEYED, readable, readable_json

C0, C1 = [*range(0x20), 0x7F], [*range(0x80, 0xA0)]
LINE_BREAKS = [0x0A, 0x0B, 0x0C, 0x0D, 0x1C, 0x1D, 0x1E, 0x85, 0x2028, 0x2029]
BIDI_CLASSES = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
BIDI = [*(p for p in range(0x110000) if unicodedata.bidirectional(chr(p)) in BIDI_CLASSES)]
MARKS = [0x061C, 0x200E, 0x200F]
MUST_GO = sorted({*C0, *C1, *LINE_BREAKS, *BIDI, *MARKS})
"""By Unicode's own tables, as far as Python has them."""


def test_what_is_escaped_is_what_unicode_calls_control_bidi_or_line_break() -> None:
    assert sorted(OBEYED) == MUST_GO


@pytest.mark.parametrize("point", MUST_GO)
def test_each_is_shown_as_python_writes_it(point: int) -> None:
    shown = readable(f"a{chr(point)}b")
    assert shown == f"a{repr(chr(point))[1:-1]}b"
    assert shown.isprintable()
    assert shown.splitlines() == [shown]
    assert readable(shown) == shown


@pytest.mark.parametrize("point", MUST_GO)
def test_json_says_the_same_text_without_a_raw_control(point: int) -> None:
    content = {f"k{chr(point)}": [f"v{chr(point)}"]}
    written = readable_json(content)
    assert not any(ord(c) in OBEYED for c in written)
    assert json.loads(written) == content


def test_all_else_stays_as_it_is() -> None:
    text = "Gruppe-1 Ω 事件 עברית emoji 👩‍💻 \\ \"quoted\" 'x' \xa0."
    assert readable(text) == text
    assert json.loads(readable_json(text)) == text


def test_the_layout_of_json_stays() -> None:
    assert readable_json({"a": [1]}, indent=2) == '{\n  "a": [\n    1\n  ]\n}'
