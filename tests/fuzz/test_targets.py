"""Hostile bytes (F: fuzz): every decoder of the network and of the disk refuses or succeeds.

`./dev fuzz` looks much longer, guided by coverage. What it finds becomes a line of FOUND.
"""

from random import Random

import pytest

from fuzz.mutations import mutated
from fuzz.targets import Target, targets

TARGETS = targets()
ROUNDS = 300
# target, bytes that once made it raise something else
FOUND: list[tuple[str, bytes]] = [
    ("manifest", b"[]"),
    ("manifest", b"{}"),
    ("manifest", b'{"format_version": 1, "blocks": 3}'),
    ("manifest", b"\xff"),
]


@pytest.mark.parametrize("name", TARGETS)
def test_seeds_are_read(name: str) -> None:
    """A mutation of bytes that are refused at once would reach nothing."""
    target = TARGETS[name]

    assert target.seeds
    assert [seed for seed in target.seeds if not target(seed)] == []


@pytest.mark.parametrize("name", TARGETS)
def test_mutated_bytes_are_refused_or_read(name: str) -> None:
    """Nothing but a refusal may come out. Replay: the seed is the target's name."""
    target, random = TARGETS[name], Random(name)
    making = mutated(target.seeds, random)
    for number in range(ROUNDS):
        data = next(making)
        try:
            target(data)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is a defect
            pytest.fail(f"{name}, mutation {number}: {data!r} raised {error!r}")


@pytest.mark.parametrize(("name", "data"), FOUND)
def test_what_was_found_stays_mended(name: str, data: bytes) -> None:
    """Each once raised something that no caller expected."""
    assert not TARGETS[name](data)


def test_a_decoder_that_breaks_is_noticed() -> None:
    """The net has no hole: an error that is no refusal comes through."""
    broken = Target(lambda data: data[9], (ValueError,), [b"0123456789"])

    with pytest.raises(IndexError):
        broken(b"short")
