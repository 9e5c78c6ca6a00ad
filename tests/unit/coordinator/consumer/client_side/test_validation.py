"""Bounds of what a member says of its assignors: a field and a limit in each refusal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from holdfast.coordinator.model.rejections import InvalidRequest
from unit.coordinator.consumer.client_side.computing_members import Computing, assignor

if TYPE_CHECKING:
    from holdfast.coordinator.model.member_profile import ClientAssignor

VERSIONS: dict[str, Any] = {"minimum_version": 1, "maximum_version": 3, "version": 2}


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        (tuple(assignor(f"a{number}") for number in range(17)), "at most 16"),
        ((assignor(), assignor()), "another name"),
        ((assignor(""),), "1 to 255 bytes"),
        ((assignor("ä" * 128),), "1 to 255 bytes"),
        ((assignor(**{**VERSIONS, "version": 0}),), "from minimum_version"),
        ((assignor(**{**VERSIONS, "version": 4}),), "from minimum_version"),
        ((assignor(**{**VERSIONS, "minimum_version": 4}),), "in order"),
        ((assignor(**{**VERSIONS, "minimum_version": -1}),), "0 to 32767"),
        ((assignor(**{**VERSIONS, "maximum_version": 2**15}),), "0 to 32767"),
        ((assignor(reason=-1),), "0 to 127"),
        ((assignor(reason=128),), "0 to 127"),
    ],
)
def test_what_is_out_of_bounds_is_refused(said: tuple[ClientAssignor, ...], problem: str) -> None:
    """S7: a value that KIP-848's schema cannot have, or of which there could be any number."""
    error = Computing(t=1).told(Computing(t=1).comes("a", client_assignors=said)).error

    assert isinstance(error, InvalidRequest)
    assert error.field == "holdfast.client_assignors"
    assert problem in error.problem


def test_the_largest_are_taken() -> None:
    """Sixteen, with names of 255 bytes, and the highest versions and reasons."""
    top: dict[str, Any] = {
        "minimum_version": 0,
        "maximum_version": 2**15 - 1,
        "version": 2**15 - 1,
        "reason": 127,
    }
    said = tuple(assignor(f"{number:02}" + "n" * 253, **top) for number in range(16))
    talk = Computing(t=1)

    assert talk.told(talk.comes("a", client_assignors=said)).error is None
    talk.core.check_replays()


def test_s7_all_members_together_have_one_pool_for_what_they_say() -> None:
    """S7: group.max_size x group.metadata_bytes_max, for topics and metadata together."""
    talk = Computing(t=1)
    talk.set(max_size="4", metadata_bytes_max="500")
    said = {"client_assignors": (assignor(metadata=b"x" * 850),)}
    taken = [talk.told(talk.comes(name, **said)).error for name in "abc"]

    assert taken[:2] == [None, None]
    assert isinstance(taken[2], InvalidRequest)
    assert taken[2].field == "holdfast.client_assignors"
    assert "allowed are 2000" in taken[2].problem
    assert (
        talk.told(talk.comes("c", client_assignors=(assignor(metadata=b"x" * 50),))).error is None
    )
    error = talk.told(talk.says("c", talk.member("c").epoch, **said)).error
    assert isinstance(error, InvalidRequest)
    talk.core.check_replays()
