"""Which certificates are revoked is on the log: what a call may change of it, and what goes."""

import pytest

from holdfast.coordinator.cluster import revocations
from holdfast.coordinator.model.access import KEPT_AFTER_EXPIRY_MS, Revocation
from holdfast.coordinator.model.commands import AlterRevocations, Caller, FormCluster
from holdfast.coordinator.model.events import Event, RevocationsChanged
from holdfast.coordinator.model.rejections import InvalidRequest, Rejection, UnsupportedVersion
from unit.coordinator.desk import Desk

NOW_MS = 1_700_000_000_000
A, B, C = ("a" * 64, "b" * 64, "c" * 64)


@pytest.fixture
def desk() -> Desk:
    made = Desk()
    made.decide_all("", FormCluster("c", (), level=2))
    made.state = made.state._replace(log_time_ms=NOW_MS)
    return made


def alter(
    desk: Desk, *revoked: Revocation, lifted: tuple[str, ...] = (), wall_ms: int = NOW_MS
) -> tuple[Rejection | None, tuple[Event, ...]]:
    command = AlterRevocations(Caller(1, "root"), revoked, lifted, wall_ms)
    reply, events = desk.decide(revocations.alter, command)
    return reply.error, events


def test_what_is_new_is_one_event_with_the_log_time(desk: Desk) -> None:
    error, events = alter(desk, Revocation(B, "svc", NOW_MS + 5, "stolen"), Revocation(A))

    assert error is None
    assert events == (
        RevocationsChanged(
            (
                Revocation(A, revoked_ms=NOW_MS),
                Revocation(B, "svc", NOW_MS + 5, "stolen", NOW_MS),
            ),
            (),
        ),
    )
    assert set(desk.state.revocations) == {A, B}


def test_what_changes_nothing_leaves_nothing_on_the_log(desk: Desk) -> None:
    """Who is revoked already stays so since then, and who is not cannot be lifted."""
    alter(desk, Revocation(A, reason="first"))

    assert alter(desk, Revocation(A, reason="second"), lifted=(B,)) == (None, ())
    assert desk.state.revocations[A].reason == "first"


def test_a_lifted_one_is_accepted_again(desk: Desk) -> None:
    alter(desk, Revocation(A), Revocation(B))

    assert alter(desk, lifted=(A,)) == (None, (RevocationsChanged((), (A,)),))
    assert set(desk.state.revocations) == {B}


@pytest.mark.parametrize(
    ("revoked", "lifted"),
    [
        ((Revocation("A" * 64),), ()),
        ((Revocation("a" * 63),), ()),
        ((Revocation(A, reason="x" * 201),), ()),
        ((Revocation(A, principal="a\nb"),), ()),
        ((Revocation(A, expires_ms=-1),), ()),
        ((), ("a:b",)),
        ((Revocation(A), Revocation(A, reason="again")), ()),
        ((Revocation(A),), (A,)),
    ],
)
def test_nonsense_is_refused_whole(
    desk: Desk, revoked: tuple[Revocation, ...], lifted: tuple[str, ...]
) -> None:
    error, events = alter(desk, Revocation(B), *revoked, lifted=lifted)

    assert isinstance(error, InvalidRequest)
    assert events == ()


def test_revocations_are_bounded(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(revocations, "REVOCATIONS_MAX", 2)
    alter(desk, Revocation(A), Revocation(B))

    error, events = alter(desk, Revocation(C))
    assert isinstance(error, InvalidRequest)
    assert events == ()

    error, _ = alter(desk, Revocation(C), lifted=(A,))
    assert error is None, "one that goes in the same call makes room"


def test_one_whose_certificate_has_long_expired_goes_with_a_later_change(desk: Desk) -> None:
    """The event lists what goes (S8), so that every node forgets the same ones."""
    long_ago = NOW_MS - KEPT_AFTER_EXPIRY_MS - 1
    alter(desk, Revocation(A, expires_ms=long_ago), Revocation(B, expires_ms=long_ago + 1))

    _, events = alter(desk, Revocation(C))

    assert events == (RevocationsChanged((Revocation(C, revoked_ms=NOW_MS),), (A,)),)
    assert set(desk.state.revocations) == {B, C}


@pytest.mark.parametrize(
    ("log_ms", "wall_ms"), [(NOW_MS * 2, NOW_MS), (NOW_MS, NOW_MS * 2)], ids=["log", "wall"]
)
def test_s8_one_clock_that_is_ahead_lets_no_certificate_in(
    desk: Desk, log_ms: int, wall_ms: int
) -> None:
    """Without it: a leader whose clock is a year ahead forgets who is revoked."""
    alter(desk, Revocation(A, expires_ms=NOW_MS + 1))
    desk.state = desk.state._replace(log_time_ms=log_ms)

    _, events = alter(desk, Revocation(B), wall_ms=wall_ms)

    assert events == (RevocationsChanged((Revocation(B, revoked_ms=log_ms),), ()),)


def test_one_of_which_the_expiry_is_not_known_stays_until_it_is_lifted(desk: Desk) -> None:
    alter(desk, Revocation(A))
    desk.state = desk.state._replace(log_time_ms=NOW_MS * 9)

    _, events = alter(desk, Revocation(B), wall_ms=NOW_MS * 9)

    assert events == (RevocationsChanged((Revocation(B, revoked_ms=NOW_MS * 9),), ()),)


def test_a_call_waits_for_the_level_that_holds_revocations() -> None:
    desk = Desk()
    desk.decide_all("", FormCluster("c", ()))

    error, events = alter(desk, Revocation(A))

    assert isinstance(error, UnsupportedVersion)
    assert events == ()


def test_s15_a_repeated_revocation_does_not_undo_what_was_lifted_since() -> None:
    desk = Desk()
    desk.decide_all("", FormCluster("c", (), level=2))
    caller = Caller(1, "root", request_id="0190a000-0000-7000-8000-000000000001", digest=b"d")
    revoke = AlterRevocations(caller, (Revocation(A),), (), NOW_MS)
    assert any(isinstance(each, RevocationsChanged) for each in desk.decide_all("", revoke))
    alter(desk, lifted=(A,))

    assert not any(isinstance(each, RevocationsChanged) for each in desk.decide_all("", revoke))
    assert A not in desk.state.revocations
    desk.prove()
