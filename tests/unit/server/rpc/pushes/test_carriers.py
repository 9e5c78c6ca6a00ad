"""To which stream the pushes to a member go."""

from __future__ import annotations

from holdfast.server.rpc.pushes.carriers import Carriers
from unit.server.rpc.pushes.push_world import Reader


def test_pushes_go_to_the_stream_that_carried_the_last_heartbeat() -> None:
    """group.proto: one stream, so that nobody is told twice."""
    carriers, one, other = Carriers(), Reader(), Reader()
    carriers.carry(one, "g", "a")
    carriers.carry(other, "g", "a")

    assert carriers.of("g") == {"a": other}
    assert carriers.carried == 1
    carriers.close(one)
    assert carriers.of("g") == {"a": other}, "it is not its member any more"


def test_a_stream_that_ended_carries_nobody() -> None:
    """Its memory is freed, and no other stream's."""
    carriers, one, other = Carriers(), Reader(), Reader()
    for name in ("a", "b"):
        carriers.carry(one, "g", name)
    carriers.carry(one, "h", "c")
    carriers.carry(other, "g", "d")
    carriers.close(one)

    assert (carriers.of("g"), carriers.of("h")) == ({"d": other}, {})
    assert carriers.groups == ("g",)
    carriers.close(other)
    assert carriers.carried == 0
    assert not carriers._by_carrier


def test_a_refused_heartbeat_takes_no_member_from_another_stream() -> None:
    """A stranger that names a member must not have its pushes end."""
    carriers, one, other = Carriers(), Reader(), Reader()
    carriers.carry(one, "g", "a")
    carriers.drop(other, "g", "a")
    assert carriers.of("g") == {"a": one}
    carriers.drop(one, "g", "a")
    carriers.drop(one, "g", "a")

    assert carriers.carried == 0


def test_who_waits_for_a_heartbeat_hears_of_one_that_brings_a_target_and_of_no_other() -> None:
    """A member of a mixed group that speaks the classic protocol brings none by a heartbeat."""
    carriers, one, heard = Carriers(), Reader(), []
    carriers.await_heartbeat("g", "a", lambda: heard.append("a"))
    carriers.carry(one, "g", "b", brings=True)
    carriers.carry(one, "g", "a")
    assert heard == []
    carriers.carry(one, "g", "a", brings=True)
    assert heard == ["a"]
    carriers.await_no_more("g", "a")
    carriers.carry(one, "g", "a", brings=True)

    assert heard == ["a"]


def test_a_group_is_told_of_when_it_has_a_member_again_that_can_be_asked() -> None:
    """Not for each member: a group may have ten thousand, which come together."""
    carriers, one, other, reached = Carriers(), Reader(), Reader(), []
    carriers.when_reached(lambda group_id: reached.append((group_id, dict(carriers.of(group_id)))))
    carriers.carry(one, "g", "a")
    carriers.carry(other, "g", "a")
    carriers.carry(other, "g", "b")
    carriers.carry(one, "h", "c")
    assert reached == [("g", {"a": one}), ("h", {"c": one})]
    carriers.close(other)
    carriers.carry(one, "g", "b")

    assert reached[2:] == [("g", {"b": one})]
