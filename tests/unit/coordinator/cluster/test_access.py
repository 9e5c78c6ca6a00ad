"""Who may do what is on the log: what the bootstrap, a call and a node's disk may change of it."""

from collections.abc import Iterator

import pytest

from holdfast.coordinator.cluster import access
from holdfast.coordinator.model.access import (
    ACLS_MAX,
    DENY,
    DRY_RUN,
    GROUP,
    MEMBER,
    OPEN,
    READER,
    Acl,
    administrator,
)
from holdfast.coordinator.model.commands import AlterAcls, Caller, FormCluster, GrantAdmin
from holdfast.coordinator.model.events import AccessModeChanged, AclsChanged, Event
from holdfast.coordinator.model.rejections import InvalidRequest, Rejection, UnsupportedVersion
from unit.coordinator.desk import Desk

ROOT = administrator("root")
JOINS = Acl("svc", MEMBER, GROUP, "orders*")
READS = Acl("svc", READER, GROUP, "orders*")


@pytest.fixture
def desk() -> Iterator[Desk]:
    made = Desk()
    made.decide_all("", FormCluster("c", (), level=2))
    yield made
    made.prove()


def alter(
    desk: Desk, *granted: Acl, revoked: tuple[Acl, ...] = (), mode: str = ""
) -> tuple[Rejection | None, tuple[Event, ...]]:
    command = AlterAcls(Caller(1, "root"), granted, revoked, mode)
    reply, events = desk.decide(access.alter, command)
    return reply.error, events


def test_a_new_cluster_begins_with_its_administrators_and_its_mode() -> None:
    desk = Desk()

    desk.decide_all(
        "", FormCluster("c", (), level=2, administrators=("root", "ops"), access_mode=DENY)
    )

    assert set(desk.state.acls) == {ROOT, administrator("ops")}
    assert desk.state.access_mode == DENY
    desk.prove()


def test_a_cluster_that_begins_at_level_one_begins_open() -> None:
    """Its nodes could not read a grant; a node that did would stop (S3)."""
    desk = Desk()

    desk.decide_all("", FormCluster("c", (), administrators=("root",), access_mode=DENY))

    assert (len(desk.state.acls), desk.state.access_mode) == (0, "")


def test_a_cluster_is_formed_once_and_its_grants_with_it(desk: Desk) -> None:
    events = desk.decide_all("", FormCluster("c", (), level=2, administrators=("mallory",)))

    assert events == ()


def test_a_grant_and_a_revocation_are_one_event_of_what_is_new(desk: Desk) -> None:
    alter(desk, ROOT, READS)

    error, events = alter(desk, JOINS, ROOT, revoked=(READS, Acl("x", READER, GROUP, "y")))

    assert error is None
    assert events == (AclsChanged((JOINS,), (READS,)),)
    assert set(desk.state.acls) == {ROOT, JOINS}


def test_what_changes_nothing_leaves_nothing_on_the_log(desk: Desk) -> None:
    alter(desk, ROOT)

    assert alter(desk, ROOT, mode=OPEN) == (None, ())


def test_the_mode_goes_from_open_over_a_dry_run_to_deny_and_back(desk: Desk) -> None:
    alter(desk, ROOT)

    for mode, kept in ((DRY_RUN, DRY_RUN), (DENY, DENY), (OPEN, "")):
        assert alter(desk, mode=mode) == (None, (AccessModeChanged(mode),))
        assert desk.state.access_mode == kept


@pytest.mark.parametrize("mode", [DRY_RUN, DENY])
def test_nothing_is_refused_while_there_is_no_administrator(desk: Desk, mode: str) -> None:
    alter(desk, JOINS)

    error, events = alter(desk, mode=mode)

    assert isinstance(error, InvalidRequest)
    assert events == ()


def test_a_grant_that_is_given_and_taken_in_one_call_is_named_in_words(desk: Desk) -> None:
    """An operator reads the refusal, and may not know what the program calls its values."""
    error, _ = alter(desk, JOINS, revoked=(JOINS,))

    assert isinstance(error, InvalidRequest)
    assert f"that {JOINS.principal!r} is {JOINS.role} on group {JOINS.name!r}" in error.problem


def test_the_last_administrator_cannot_be_revoked_where_anything_is_refused(desk: Desk) -> None:
    alter(desk, ROOT, mode=DENY)

    error, events = alter(desk, revoked=(ROOT,))
    assert isinstance(error, InvalidRequest)
    assert events == ()

    error, _ = alter(desk, administrator("ops"), revoked=(ROOT,))
    assert error is None, "another one takes its place in the same call"


@pytest.mark.parametrize(
    ("granted", "revoked", "mode"),
    [
        ((Acl("", READER, GROUP, "g"),), (), ""),
        ((), (Acl("a", "owner", GROUP, "g"),), ""),
        ((READS,), (READS,), ""),
        ((), (), "closed"),
    ],
)
def test_nonsense_is_refused_whole(
    desk: Desk, granted: tuple[Acl, ...], revoked: tuple[Acl, ...], mode: str
) -> None:
    error, events = alter(desk, ROOT, *granted, revoked=revoked, mode=mode)

    assert isinstance(error, InvalidRequest)
    assert events == ()


def test_grants_are_bounded(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ACLS_MAX >= 1_000
    monkeypatch.setattr(access, "ACLS_MAX", 2)
    alter(desk, ROOT, READS)

    error, _ = alter(desk, JOINS)
    assert isinstance(error, InvalidRequest)

    error, _ = alter(desk, JOINS, revoked=(READS,))
    assert error is None


def test_a_call_waits_for_the_level_that_holds_grants() -> None:
    desk = Desk()
    desk.decide_all("", FormCluster("c", ()))

    error, events = alter(desk, ROOT)

    assert isinstance(error, UnsupportedVersion)
    assert events == ()


def test_who_owns_a_nodes_disk_becomes_an_administrator(desk: Desk) -> None:
    alter(desk, ROOT, mode=DENY)

    assert desk.decide_all("", GrantAdmin("me")) == (AclsChanged((administrator("me"),), ()),)
    assert desk.decide_all("", GrantAdmin("me")) == (), "asked at each start, granted once"


def test_the_way_back_in_needs_no_door_at_level_one() -> None:
    """Before there are grants everybody may do everything."""
    desk = Desk()
    desk.decide_all("", FormCluster("c", ()))

    assert desk.decide_all("", GrantAdmin("me")) == ()


def test_s15_a_repeated_change_has_no_second_effect(desk: Desk) -> None:
    """What was revoked meanwhile is not granted again by a repetition of the old call."""
    alter(desk, ROOT)
    caller = Caller(1, "root", request_id="0190a000-0000-7000-8000-000000000001", digest=b"d")
    grant = AlterAcls(caller, (JOINS,), ())
    assert AclsChanged((JOINS,), ()) in desk.decide_all("", grant)
    alter(desk, revoked=(JOINS,))

    assert not any(isinstance(event, AclsChanged) for event in desk.decide_all("", grant))
    assert JOINS not in desk.state.acls
