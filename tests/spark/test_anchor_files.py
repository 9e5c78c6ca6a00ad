"""Files of anchors: what the commands print is read, and nothing else passes for an anchor."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from holdfast.replay.read.anchor_files import Anchor, read_anchors, refuse_others
from spark.anchored import as_told

ONE = Anchor("c", "n1", 7, 1_000, bytes(range(32)), 0x0123456789ABCDEF, 3)
TWO = Anchor("c", "n2", 9, 2_000, bytes(32), 1)


def file_of(folder: Path, text: str) -> Path:
    path = folder / "anchors"
    path.write_text(text)
    return path


def status(*told: tuple[str, dict[str, Any] | None]) -> str:
    """What `holdfast cluster status --json` prints; None: a silent node."""
    return json.dumps([{"name": name, "answer": answer} for name, answer in told], indent=2)


@pytest.mark.parametrize(
    "text",
    [
        f"{json.dumps(as_told(ONE))}\n{json.dumps(as_told(TWO))}\n",
        f"\n{json.dumps(as_told(ONE))}\n\n{json.dumps(as_told(TWO))}",
        json.dumps([as_told(ONE), as_told(TWO)], indent=1),
        status(
            ("n1", {"term": 3, "anchor": as_told(ONE)}),
            ("n3", None),
            ("n2", {"anchor": as_told(TWO)}),
        ),
    ],
    ids=["lines", "empty lines", "a list", "status"],
)
def test_what_the_commands_print_is_read(text: str, tmp_path: Path) -> None:
    path = file_of(tmp_path, text)

    assert read_anchors([path]) == [
        ONE._replace(source=f"{path}, number 1"),
        TWO._replace(source=f"{path}, number 2"),
    ]


def test_one_object_alone_and_values_are_anchors_too(tmp_path: Path) -> None:
    path = file_of(tmp_path, json.dumps(as_told(ONE), indent=2))

    assert [each._replace(source="") for each in read_anchors([TWO, path])] == [TWO, ONE]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "holds no anchor"),
        ("no anchor", "is no file of anchors"),
        ("[]", "holds no anchor"),
        (status(("n1", None)), "holds no anchor"),
        (status(("n1", {"term": 3})), "node n1 told no anchor"),
        ("7", "'7' is no anchor"),
        ("[" * 100_000, "is no file of anchors"),
        (json.dumps(as_told(ONE) | {"format": 2}), "the format 2, and this version .* reads 1"),
        (json.dumps(as_told(ONE) | {"index": -1}), "index must be a whole number, and is -1"),
        (json.dumps(as_told(ONE) | {"index": True}), "index must be a whole number, and is True"),
        (json.dumps(as_told(ONE) | {"index": 1 << 63}), "index must be a whole number"),
        (json.dumps(as_told(ONE) | {"chain": "ab"}), "chain must be 64 hexadecimal digits"),
        (json.dumps(as_told(ONE) | {"digest": "x" * 16}), "digest must be 16 hexadecimal digits"),
        (json.dumps(as_told(ONE) | {"node": ""}), "node must be a name"),
        (json.dumps(as_told(ONE) | {"recovery_number": "1"}), "recovery_number must be a whole"),
        ('{"format": 1}', "cluster_id must be a name, and is missing"),
    ],
)
def test_what_is_no_anchor_is_refused_with_the_file_and_the_reason(
    text: str, told: str, tmp_path: Path
) -> None:
    path = file_of(tmp_path, text)

    with pytest.raises(ValueError, match=f"{path}.*{told}"):
        read_anchors([path])


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "anchors"
    path.write_bytes(b"\xff\xfe\x00")

    with pytest.raises(ValueError, match="is no file of anchors"):
        read_anchors([path])


def test_a_missing_file_is_told_as_such(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="there is no file of anchors"):
        read_anchors([tmp_path / "none"])


def test_anchors_of_another_cluster_are_refused_by_its_name() -> None:
    refuse_others([ONE, TWO], ["c"])
    with pytest.raises(ValueError, match="node n2 at index 9 is of the cluster 'd'"):
        refuse_others([ONE, TWO._replace(cluster_id="d")], ["c"])
