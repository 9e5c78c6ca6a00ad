"""What a call cannot be asked for is refused before anything is sent: nobody is there to ask."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from holdfast.client import Members, Offset, TopicPartition, restart_on_signals, sync
from holdfast.client._translate import offset_messages
from unit.client.both_shells import Shell

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NOBODY = "127.0.0.1:1"
INT32_MAX, INT64_MAX = 2**31 - 1, 2**63 - 1
both = pytest.mark.parametrize("shell", list(Shell), ids=lambda shell: shell.value)

KEYS: list[Any] = ["documents-0", "ab", "", 7, None, ("t",), ("t", 0, 1), ("t", "0"), (0, "t")]
OFFSETS: list[tuple[Any, type[Exception]]] = [
    *((value, ValueError) for value in (-1, -5, INT64_MAX + 1, 2**100, Offset(-9), Offset(2**63))),
    *((value, TypeError) for value in ("5", (5, "half"), True, 5.0, None, Offset(5, 3))),  # type: ignore[arg-type]  # the slip
]
TIMEOUTS: list[Any] = [0, -1, INT32_MAX + 1, 2**40, 1.5, "10", None, True]


@contextmanager
def admin() -> Iterator[sync.Admin]:
    """The blocking one, which is the asyncio one in a thread: so both are asked."""
    with sync.Admin(NOBODY, timeout_ms=100) as made:
        yield made


def committing(offsets: Any) -> list[Callable[[], object]]:  # noqa: ANN401 - wrong ones, too
    """The four ways to commit: a member and an admin, each in both shells."""

    def by_admin() -> None:
        with admin() as made:
            made.commit_offsets("g", offsets)

    members = [shell.member(NOBODY, group="g", topics=["t"]) for shell in Shell]
    return [by_admin, *(lambda member=member: member.commit(offsets) for member in members)]


@pytest.mark.parametrize(("value", "kind"), OFFSETS, ids=repr)
def test_an_offset_that_cannot_be_is_refused_with_its_partition(
    value: object, kind: type[Exception]
) -> None:
    """Kafka's OffsetAndMetadata refuses a negative offset, its broker does not; so here."""
    for commit in committing({("t", 0): 1, ("documents", 7): value}):
        with pytest.raises(kind, match="partition 7 of 'documents'"):
            commit()


def test_an_offset_with_metadata_as_a_bare_pair_is_told_how_it_is_written() -> None:
    for commit in committing({("t", 0): (5, "half")}):
        with pytest.raises(TypeError, match=r"written Offset\(number, text\), not \(5, 'half'\)"):
            commit()


def test_an_array_is_no_whole_number() -> None:
    """As numpy's, which say that they are and then raise."""

    class Array:
        def __index__(self) -> int:
            raise TypeError("only integer scalar arrays can be converted to a scalar index")

    with pytest.raises(TypeError, match="partition 0 of 't' is a whole number"):
        offset_messages.to_commit({("t", 0): Array()})  # type: ignore[dict-item]  # the slip


@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_a_key_that_is_no_partition_is_told_what_it_has_to_be(key: object) -> None:
    for commit in committing({key: 1}):
        with pytest.raises(TypeError, match=r"topic and number, as in \(\"documents\", 0\)"):
            commit()


@pytest.mark.parametrize("number", [-1, INT32_MAX + 1])
def test_a_partition_number_that_cannot_be_is_refused(number: int) -> None:
    for commit in committing({("t", number): 1}):
        with pytest.raises(ValueError, match=f"partition number of 't'.* not {number}"):
            commit()


@pytest.mark.parametrize("offsets", [None, 5, [(("t", 0), 5)]], ids=repr)
def test_offsets_that_are_no_mapping_are_refused_by_name(offsets: object) -> None:
    for commit in committing(offsets):
        with pytest.raises(TypeError, match=r"^offsets is a mapping such as \{"):
            commit()


def test_what_can_be_committed_is_taken() -> None:
    """Also other libraries' whole numbers, and metadata that is None, as protobuf takes them."""

    class Whole:
        def __index__(self) -> int:
            return 6

    given: dict[Any, Any] = {
        ("t", 2): Offset(INT64_MAX, "half"),
        TopicPartition("t", 0): 0,
        ("t", 1): Whole(),
        ("s", INT32_MAX): Offset(1, None),  # type: ignore[arg-type]  # as from a translated program
    }
    sent = {
        (topic.name, part.partition_index, part.committed_offset, part.committed_metadata)
        for request in offset_messages.outside_commit_requests("g", given)
        for topic in request.topics
        for part in topic.partitions
    }
    assert sent == {
        ("t", 0, 0, ""),
        ("t", 1, 6, ""),
        ("t", 2, INT64_MAX, "half"),
        ("s", INT32_MAX, 1, ""),
    }


@both
def test_other_calls_about_partitions_refuse_what_names_none(shell: Shell) -> None:
    member = shell.member(NOBODY, group="g", topics=["t"])
    with admin() as asked:
        calls: list[Callable[[Any], object]] = [
            lambda wrong: member.committed(wrong, timeout_ms=100),
            lambda wrong: asked.offsets("g", wrong),
            lambda wrong: asked.delete_offsets("g", wrong),
        ]
        for call in calls:
            for wrong in ("documents-0", ["documents-0"], ("t", 0), [("t", "0")]):
                with pytest.raises(TypeError, match=r"^A partition is named by topic and number"):
                    call(wrong)
            with pytest.raises(TypeError, match=r"^partitions is a list of partitions"):
                call(None)


@both
@pytest.mark.parametrize("timeout_ms", TIMEOUTS)
def test_a_timeout_of_a_call_has_the_rule_of_a_member_s(shell: Shell, timeout_ms: object) -> None:
    member = shell.member(NOBODY, group="g", topics=["t"])
    with pytest.raises(ValueError, match=f"timeout_ms is 1 to {INT32_MAX}"):
        member.commit({("t", 0): 1}, timeout_ms=timeout_ms)
    with pytest.raises(ValueError, match=f"timeout_ms is 1 to {INT32_MAX}"):
        member.committed(timeout_ms=timeout_ms)


@pytest.mark.parametrize("timeout_ms", TIMEOUTS)
def test_the_timeout_of_an_admin_has_it_too(timeout_ms: Any) -> None:  # noqa: ANN401 - wrong ones
    with pytest.raises(ValueError, match=f"timeout_ms is 1 to {INT32_MAX}"):
        sync.Admin(NOBODY, timeout_ms=timeout_ms)


@pytest.mark.parametrize("call", ["create_topics", "create_partitions"])
@pytest.mark.parametrize(
    ("count", "kind"),
    [
        *((count, ValueError) for count in (0, -1, INT32_MAX + 1, 2**40)),
        *((count, TypeError) for count in ("4", 4.0, None, True)),
    ],
)
def test_a_count_of_partitions_that_cannot_be_is_refused_with_its_topic(
    call: str, count: object, kind: type[Exception]
) -> None:
    about = f"partition count of 'q' is a whole number, 1 to {INT32_MAX}, not {count!r}"
    with admin() as asked, pytest.raises(kind, match=about):
        getattr(asked, call)({"t": 4, "q": count})


@pytest.mark.parametrize("call", ["create_topics", "create_partitions"])
@pytest.mark.parametrize("topics", [["q"], "q", None, {3: 4}], ids=repr)
def test_topics_to_create_are_a_mapping(call: str, topics: object) -> None:
    with admin() as asked, pytest.raises(TypeError, match=r"is a mapping such as \{\"documents\""):
        getattr(asked, call)(topics)


@pytest.mark.parametrize("value", [True, 5.0, ["5"], b"5"], ids=repr)
def test_a_setting_that_is_neither_text_nor_whole_number_is_refused_by_name(value: Any) -> None:  # noqa: ANN401 - wrong ones
    with admin() as asked, pytest.raises(TypeError, match=r"'group\.max_size'.*None"):
        asked.alter_settings({"group.max_size": value})


@pytest.mark.parametrize("settings", [None, ["a"], {3: "4"}], ids=repr)
def test_settings_are_a_mapping(settings: Any) -> None:  # noqa: ANN401 - wrong ones
    with admin() as asked, pytest.raises(TypeError, match=r"^settings is a mapping such as \{"):
        asked.alter_settings(settings)


@pytest.mark.parametrize(
    "call",
    ["describe_groups", "delete_groups", "delete_topics", "list_topics", "describe_settings"],
)
@pytest.mark.parametrize("given", [["mine"], ("mine",), None, 3], ids=repr)
def test_a_list_in_place_of_names_is_told_how_it_is_written(call: str, given: object) -> None:
    about = rf"^{call} takes names one by one.*{call}\(\*names\)"
    with admin() as asked, pytest.raises(TypeError, match=about):
        getattr(asked, call)(given)


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda asked, wrong: asked.remove_members("g", instance_ids=wrong), "instance_ids"),
        (lambda asked, wrong: asked.remove_members("g", member_ids=wrong), "member_ids"),
        (lambda asked, wrong: asked.list_groups(states=wrong), "states"),
        (lambda asked, wrong: asked.list_groups(types=wrong), "types"),
    ],
)
def test_a_text_in_place_of_a_list_is_not_taken_for_its_letters(
    call: Callable[[sync.Admin, object], object], named: str
) -> None:
    with admin() as asked:
        with pytest.raises(ValueError, match=f"^{named} is a list of names, not 'i-1'"):
            call(asked, "i-1")
        for wrong in (3, [3]):
            with pytest.raises(TypeError, match=f"^{named} is a list of names"):
                call(asked, wrong)


@pytest.mark.parametrize("restart", [restart_on_signals, sync.restart_on_signals])
def test_what_cannot_be_restarted_is_refused_before_the_signal_comes(
    restart: Callable[..., None],
) -> None:
    """Found out by SIGTERM only, it would kill the process where it stands."""
    about = r"takes members one by one.*\(\*members\)"

    async def story() -> None:
        several = Members(NOBODY, group="g", topics=["t"], count=2)
        for wrong in (several, [*several], None):
            with pytest.raises(TypeError, match=about):
                restart(wrong)

    asyncio.run(story())
