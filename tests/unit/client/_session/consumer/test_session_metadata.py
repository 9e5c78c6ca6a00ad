"""What the assignor of a target says to a member, and when its `on_assignment` hears it (T-21).

In the order of KIP-848's reconciliation: after what goes was let go of, before what comes is told.
"""

from __future__ import annotations

from holdfast.client._session.consumer.states import State
from holdfast.client._session.session_io import Assigned, Revoke, ToldByAssignor
from unit.client._session.consumer.computing_driver import ComputingDriver
from unit.client._session.consumer.driver import FENCED_MEMBER_EPOCH, owned_in, partitions


def told(metadata: bytes | None, *numbers: int, by: str = "zones") -> ToldByAssignor:
    return ToldByAssignor(by, partitions(*numbers), metadata, 0 if metadata is None else 1)


def test_it_is_heard_before_on_assigned() -> None:
    driver = ComputingDriver()
    driver.joined()
    driver.next_beat()
    driver.says(b"x", 0, 1, epoch=3)
    heard, given = driver.told[-2:]
    assert heard == told(b"x", 0, 1)
    assert isinstance(given, Assigned)
    assert given.partitions == partitions(0, 1)


def test_it_is_heard_after_the_on_revoked_of_what_goes() -> None:
    driver = ComputingDriver()
    driver.joined(0)
    driver.next_beat()
    driver.says(b"x", 1, epoch=3)
    assert driver.told_last == Revoke(partitions(0))
    driver.returns()
    heard, given = driver.told[-2:]
    assert heard == told(b"x", 1)
    assert isinstance(given, Assigned)


def test_it_is_heard_after_on_revoked_if_nothing_comes_as_well() -> None:
    driver = ComputingDriver()
    driver.joined(0, 1)
    driver.next_beat()
    driver.says(b"x", 0, epoch=3)
    assert driver.heard == []
    driver.returns()
    assert driver.told_last == told(b"x", 0)
    assert owned_in(driver.beat) == [0]


def test_metadata_alone_is_heard_and_disturbs_nothing() -> None:
    driver = ComputingDriver()
    driver.joined(0)
    driver.next_beat()
    driver.says(b"x", 0, epoch=3)
    assert driver.told_last == told(b"x", 0)
    assert (driver.state, driver.owns()) == (State.STABLE, [0])
    assert driver.quiet


def test_it_is_heard_once_for_an_epoch_and_again_with_more_partitions() -> None:
    """A full heartbeat is answered with everything (K-M14)."""
    driver = ComputingDriver()
    driver.joined()
    for given, epoch in (((0,), 3), ((0,), 3), ((0, 1), 3), ((0, 1), 4)):
        if driver.quiet:
            driver.next_beat()
        driver.says(b"x", *given, epoch=epoch)
    assert driver.heard == [told(b"x", 0), told(b"x", 0, 1), told(b"x", 0, 1)]


def test_an_assignor_hears_that_the_target_is_not_its_own_any_more() -> None:
    """Of another one that all members share, or of the service's own: ""."""
    driver = ComputingDriver()
    driver.joined(0)
    for by, epoch in (("zones", 3), ("other", 4), ("", 5), ("", 6), ("zones", 7)):
        driver.next_beat()
        driver.says(b"x" if by else b"", 0, epoch=epoch, by=by)
    assert driver.heard == [
        told(b"x", 0),
        told(None, 0),
        told(b"x", 0, by="other"),
        told(None, 0, by="other"),
        told(b"x", 0),
    ]


def test_t13_what_was_not_heard_before_a_fence_is_not_heard_after_it() -> None:
    driver = ComputingDriver()
    driver.joined(0)
    driver.next_beat()
    driver.says(b"x", 1, epoch=3)
    driver.next_beat()
    driver.refuse(FENCED_MEMBER_EPOCH)
    driver.returns()
    driver.accept(4)
    assert driver.heard == []
