"""Defects of the order of heartbeats, of lives, and of timeouts in the heartbeat protocol."""

# ruff: noqa: ANN401 (a patch passes on whatever the function in whose place it stands takes)

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from holdfast.coordinator.cluster import settings
from holdfast.coordinator.consumer import sessions
from holdfast.coordinator.consumer.identities import beat_order, takeover
from holdfast.coordinator.groups import draft
from teeth.catalogue import Scenario, seeded
from teeth.patching import replaced

if TYPE_CHECKING:
    from collections.abc import Iterator

ORDER = "tests/unit/coordinator/consumer/identities/test_beat_order.py::"
SESSIONS = "tests/unit/coordinator/consumer/test_sessions.py::"
TAKEOVER = "tests/unit/coordinator/consumer/identities/test_takeover.py::"
STATIC = "tests/unit/coordinator/consumer/identities/test_static_members.py::"


@seeded("S26", Scenario(f"{ORDER}test_s26_a_late_list_frees_nothing"))
def heartbeats_have_no_order() -> Iterator[None]:
    """A list of owned partitions from the past frees what its member works on."""
    with (
        replaced(beat_order, "refusal", lambda *_: None),
        replaced(beat_order, "is_repeated", lambda *_: False),
    ):
        yield


@seeded(
    "S26",
    Scenario(f"{ORDER}test_s26_a_doubled_list_from_before_its_answer_was_known_frees_nothing"),
)
def a_new_leader_does_not_know_what_was_heard() -> Iterator[None]:
    """What was heard and changed nothing is not on the log, and comes again after a failover."""
    with replaced(beat_order, "_record", lambda *_: None):
        yield


@seeded("S12", Scenario(f"{TAKEOVER}test_an_older_life_is_fenced_and_told_which_one_is_newer"))
def the_oldest_life_has_the_place() -> Iterator[None]:
    """A process that comes late takes the place of its successor, which works."""
    compared: Any = takeover.may_take

    def the_other_way(given: Any, command: Any, holder: Any) -> Any:
        asked = replace(command, life=holder.life)
        return compared(given, asked, holder._replace(life=command.life))

    with replaced(takeover, "may_take", the_other_way):
        yield


@seeded(
    "S12",
    Scenario(
        f"{TAKEOVER}test_s12_who_was_replaced_by_a_classic_process_does_not_take_the_place_back"
    ),
)
def a_replaced_life_is_forgotten() -> Iterator[None]:
    """A process whose successor tells no life takes its place back, by a join."""
    compared: Any = takeover.may_take

    def without_it(given: Any, command: Any, holder: Any) -> Any:
        return compared(given, command, holder._replace(replaced_life=""))

    with replaced(takeover, "may_take", without_it):
        yield


@seeded("S9", Scenario(f"{STATIC}test_s9_a_new_leader_keeps_the_place_in_full"))
def a_new_leader_keeps_a_place_for_a_session_only() -> Iterator[None]:
    """A process that restarts for ten minutes, over a failover, comes back to nothing."""
    known: Any = sessions.timeout_ms

    def of_a_session(given: Any, member: Any) -> Any:
        leads_anew = not given.volatile.armed
        return known(given, member._replace(absence_ms=0) if leads_anew else member)

    with replaced(sessions, "timeout_ms", of_a_session):
        yield


@seeded("S11", Scenario(f"{SESSIONS}test_s11_the_answer_that_told_a_shorter_session_may_be_lost"))
def a_shorter_session_counts_at_once() -> Iterator[None]:
    """The member whose answer was lost acts on for longer than the service waits."""

    def as_set(given: Any, _member: Any) -> int:
        return settings.of(given.state, given.group_id).consumer.session_timeout_ms

    with replaced(sessions, "timeout_ms", as_set):
        yield


@seeded(
    "S23",
    Scenario("tests/unit/coordinator/consumer/test_heartbeat.py::test_a_mark_remembers_what_waits"),
)
def what_is_taken_back_takes_others_with_it() -> Iterator[None]:
    """A heartbeat of the same batch has neither effect nor answer."""
    made: Any = draft.Draft.back_to

    def forgets(self: Any, mark: Any) -> None:
        kept = self.deferred
        made(self, mark)
        self.deferred = kept[: len(mark.deferred)]

    with replaced(draft.Draft, "back_to", forgets):
        yield
