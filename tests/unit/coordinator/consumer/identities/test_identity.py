"""K-M10 to K-M12: a heartbeat without a number is judged by its member epoch alone.

So speak the clients of Kafka, and those of other languages that do not number their heartbeats
(S26). What is of the past must change nothing: above all, it must give nothing up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.coordinator.model.rejections import FencedMemberEpoch
from unit.coordinator.consumer.talk import Talk, parts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.coordinator.model.ids import TopicPartitions

ALL = parts("t0", "t1", "t2", "t3")


@pytest.fixture
def talk() -> Iterator[Talk]:
    """`a` owned all four partitions, gave two of them to `b`, and then got these back."""
    made = Talk(t=4)
    first = made.told(made.joins("a", "t")).member_epoch
    made.told(made.says("a", first, owned=ALL))
    made.told(made.joins("b", "t"))
    made.told(made.says("a", first, owned=ALL))  # it is told what to give up
    second = made.told(made.says("a", first, owned=parts("t0", "t1"))).member_epoch
    made.told(made.says("b", made.member("b").epoch, owned=()))
    made.told(made.says("b", -1))
    made.told(made.says("a", second, owned=parts("t0", "t1")))
    made.told(made.says("a", made.member("a").epoch, owned=ALL))
    assert first < second < made.member("a").epoch
    assert [each.partitions for each in made.member("a").owned] == [(0, 1, 2, 3)]
    yield made
    made.core.check_replays()


def fenced(talk: Talk, epoch: int, owned: tuple[TopicPartitions, ...] | None) -> bool:
    """Whether a heartbeat of `a` is fenced, and nothing comes of it."""
    before = talk.core.state
    reply = talk.told(talk.says("a", epoch, owned=owned))
    return isinstance(reply.error, FencedMemberEpoch) and talk.core.state is before


@pytest.mark.parametrize("owned", [(), parts("t0"), parts("t0", "t1"), ALL, None])
@pytest.mark.parametrize("back", [2, 3])
def test_m12_a_late_list_of_an_earlier_epoch_gives_nothing_up(
    back: int, owned: tuple[TopicPartitions, ...] | None, talk: Talk
) -> None:
    """K-M12: else the next member works on what this one does not know to be gone (INV-1)."""
    talk.told(talk.joins("b", "t"))
    assert fenced(talk, talk.member("a").epoch - back, owned)

    assert talk.told(talk.says("b", talk.member("b").epoch, owned=())).assignment in (None, ())


@pytest.mark.parametrize("owned", [(), ALL, None])
def test_m10_an_epoch_that_is_to_come_is_fenced(
    owned: tuple[TopicPartitions, ...] | None, talk: Talk
) -> None:
    """K-M10: it is another process's, or of another group of this name."""
    assert fenced(talk, talk.member("a").epoch + 1, owned)


def test_m11_the_epoch_before_is_taken_of_who_lost_the_answer_that_told_the_new_one() -> None:
    """K-M11: it owns no more than it was given, and is answered with all that it is to own."""
    talk = Talk(t=4)
    first = talk.told(talk.joins("a", "t")).member_epoch
    talk.told(talk.joins("b", "t"))
    talk.told(talk.says("a", first, owned=parts("t0", "t1")))
    repeated = talk.told(talk.says("a", first, owned=parts("t0", "t1")))

    assert (repeated.error, repeated.member_epoch) == (None, talk.member("a").epoch)
    assert fenced(talk, first, None)
    talk.core.check_replays()
