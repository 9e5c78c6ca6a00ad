"""A group that is too large for an assignor in a member: nobody is asked for ever (S7, ADR 57)."""

from __future__ import annotations

import asyncio
from random import Random
from typing import TYPE_CHECKING, Any, cast

import pytest

from holdfast.coordinator.consumer.client_side import picture
from holdfast.coordinator.kernel import queries
from holdfast.coordinator.model.commands import AlterSettings
from holdfast.coordinator.model.consumer_events import (
    AssignmentRequested,
    EpochRaised,
    MemberTarget,
    TargetStored,
)
from holdfast.coordinator.model.described import PreparedAssignment
from holdfast.coordinator.model.events import SettingChange
from holdfast.coordinator.model.ids import TopicPartitions
from holdfast.server.guard.answer_size import ANSWER_BYTES_MAX
from holdfast.server.rpc.slices import Slices
from holdfast.server.translate import assignments
from holdfast.v1 import extras_pb2 as x
from unit.coordinator.consumer.client_side.computing_members import NAME, Computing, assignor
from unit.coordinator.consumer.talk import GROUP

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.coordinator.model.events import Event

MIB = 1 << 20


@pytest.fixture
def talk() -> Iterator[Computing]:
    """A group whose members may say much; whatever happens replays."""
    made = Computing(t=4)
    entry = (SettingChange("log.entry_bytes_max", str(64 * MIB)),)
    made.send(AlterSettings(made.caller(), "", entry))
    made.set(max_size="10", metadata_bytes_max=str(4 * MIB), assignment_bytes_max=str(2 * MIB))
    yield made
    made.core.check_replays()


def large(mib: int) -> dict[str, Any]:
    return {"client_assignors": (assignor(metadata=b"x" * mib * MIB),)}


def events(talk: Computing, *kinds: type) -> list[Event]:
    every = (record.event for applied in talk.core.log for record in applied.records)
    return [event for event in every if isinstance(event, kinds)]


def test_s7_a_group_that_is_too_large_has_the_services_target(talk: Computing) -> None:
    """Each that is chosen would be told that it is too large, and the group have no target."""
    talk.send(talk.comes("a", **large(9)))
    talk.send(talk.comes("b", **large(9)))
    stored = [each for each in events(talk, TargetStored) if isinstance(each, TargetStored)]

    assert [(each.epoch, each.assignor) for each in stored][-1:] == [(3, "uniform")]
    assert [(each.installed_by, each.passed_over) for each in stored][-1:] == [("", NAME)]
    assert not talk.beats("a")
    assert not talk.beats("b")


def test_it_is_described_and_so_is_who_computes_when_it_is_smaller(talk: Computing) -> None:
    """It gets its assignor back by itself."""
    talk.send(talk.comes("a", **large(9)))
    talk.send(talk.comes("b", **large(9)))
    found = queries.describe_consumer_group(talk.core.state, GROUP)
    assert (found.assignor, found.passed_over) == ("uniform", NAME)

    assert talk.beats("b", **large(1))
    found = queries.describe_consumer_group(talk.core.state, GROUP)
    assert (found.assignor, found.passed_over) == (NAME, "")


def asked_of_one_that_grows(monkeypatch: pytest.MonkeyPatch) -> Computing:
    """A member is asked at epoch 2; then the group is too large, and no epoch was raised."""
    talk = Computing(t=4)
    talk.send(talk.comes("a"))
    assert talk.chosen == "a"
    monkeypatch.setattr(picture, "BYTES_MAX", 100)
    return talk


@pytest.mark.source("it lowers the bound: a group that is so large takes long to make")
@pytest.mark.parametrize("how", ["says that it fails", "is late"])
def test_a_picture_that_has_grown_while_a_member_was_asked(
    how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An expression that is looked up raises no epoch; whoever is asked then can never answer."""
    talk = asked_of_one_that_grows(monkeypatch)
    if how == "is late":
        talk.core.advance(20_000)
        talk.beats("a")
        talk.core.advance(20_000)
        talk.beats("a")
        talk.core.advance(20_000)
    else:
        assert talk.fails("a") is None
    raised = events(talk, EpochRaised)[-1]
    assert isinstance(raised, EpochRaised)
    assert (raised.epoch, raised.cause) == (3, "assignor")
    assert len(events(talk, AssignmentRequested)) == 1

    assert not talk.beats("a")
    stored = events(talk, TargetStored)[-1]
    assert isinstance(stored, TargetStored)
    assert (stored.epoch, stored.passed_over) == (3, NAME)


@pytest.mark.source("as above")
def test_a_word_of_failure_raises_one_epoch_and_not_one_each_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """INV-16: an epoch each time, and no target would ever be of the newest."""
    talk = asked_of_one_that_grows(monkeypatch)
    talk.fails("a")
    talk.fails("a")

    assert talk.group.generation == 3


def test_an_answer_has_room_for_what_fits() -> None:
    assert picture.BYTES_MAX <= ANSWER_BYTES_MAX


def one_each(talk: Computing) -> Iterator[MemberTarget]:
    """A target by which each member has a partition of one topic, as far as there are any."""
    taken = set[str]()
    for name, member in talk.group.body.members.items():
        free = [each for each in member.profile.topics if each not in taken]
        taken.update(free[:1])
        yield MemberTarget(name, tuple(TopicPartitions(each, (0,)) for each in free[:1]))


@pytest.mark.parametrize("seed", range(20))
def test_it_is_never_reckoned_too_small(seed: int) -> None:
    """S7: what is found to fit does fit, whatever letters names have."""
    random = Random(seed)
    topics = {f"{'t' * random.randrange(1, 200)}{n}": n % 5 + 1 for n in range(30)}
    talk = Computing(**topics)
    for number in range(random.randrange(1, 12)):
        talk.send(
            talk.joins(
                f"{'mü𝄞'[number % 3] * random.randrange(1, 30)}{number}",
                *sorted(random.sample(sorted(topics), random.randrange(1, 30))),
                rack_id=random.choice((None, "ü" * 50)),
                instance_id=random.choice((None, f"i{number}")),
                client_assignors=(assignor(metadata=random.randbytes(random.randrange(50))),),
            )
        )
    assert talk.hands_in(talk.chosen, tuple(one_each(talk))) is None
    talk.beats(next(iter(talk.group.body.members)), client_assignors=(assignor(reason=1),))
    found = talk.prepares(talk.chosen)
    assert isinstance(found, PreparedAssignment)
    raw = cast("bytes", asyncio.run(assignments.prepared(found, x.ResponseExtras(), Slices())))

    assert any(each.target for each in found.members)
    of_group = (talk.group.body, talk.core.state.topics, NAME)
    assert len(raw) <= picture.most(*of_group) <= picture.roughly(*of_group)
    assert 4 * len(raw) > picture.most(*of_group) - 2_048
