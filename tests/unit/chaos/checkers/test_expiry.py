"""INV-12: an expiry that comes too early, and one that never comes, are found."""

import pytest

from holdfast.chaos.history.happenings import Began, Role, Watched
from holdfast.coordinator.model.events import GenerationStarted, MemberExpired, Rejoin
from unit.chaos.scribe import (
    SESSION_MS,
    Scribe,
    joined,
    opened,
    replaced,
    started,
    updated,
    whats,
)

FIRST = 9_000
"""The earliest that a clock which is 10 % fast lets a session of 10 s end."""
LAST = 11_112 + 2_000 + 1
"""The latest by a clock that is 10 % slow, with the grace and the simulator's millisecond."""


def member(*, lead: bool = True) -> Scribe:
    """a.1 has joined, at 0 s; the leader has been there for a minute."""
    s = Scribe()
    if lead:
        s.lead()
    s.wait(60_000)
    s.create()
    s.entry(opened(), joined("a.1", request_id="r1"), joined("b"))
    s.entry(started(1, "a.1", "b"))
    return s


def heartbeat(s: Scribe, who: str = "a.1", **told: str) -> None:
    number = s.send("Heartbeat", member_id=who, generation=1)
    s.hear(number, "rejected" if told else "ok", **told)


def expire(s: Scribe, after_ms: float, who: str = "a.1") -> Scribe:
    s.wait(after_ms).entry(opened(), MemberExpired(who, "session"))
    return s


def keep_alive(s: Scribe, rounds: int, *names: str) -> None:
    for _ in range(rounds):
        for name in names:
            heartbeat(s, name)
        s.wait(1_000)


def test_a_session_that_ends_in_its_time_passes() -> None:
    s = member()
    heartbeat(s)
    expire(s, SESSION_MS)

    verdict = s.judged("I12")

    assert verdict.violations == []
    assert verdict.checked == {"sessions expired": 1, "sessions": 2}


def test_an_expiry_soon_after_a_heartbeat_is_found() -> None:
    s = member()
    heartbeat(s)
    expire(s, FIRST - 2)

    assert "a.1 of 'g' expired 8.998 s after its last sign of life" in whats(s.judged("I12"))


def test_an_unsure_clock_is_allowed_for() -> None:
    s = member()
    heartbeat(s)

    assert expire(s, FIRST).judged("I12").violations == []


def test_a_history_says_how_unsure_its_clocks_are() -> None:
    s = member()
    s.history.insert(0, Began(0, 1, "simulation", ("n1",), 0.0, {}))
    heartbeat(s)

    assert len(expire(s, FIRST).judged("I12").violations) == 1


def test_on_a_cluster_an_expiry_may_be_as_late_as_somebody_knew_of_it() -> None:
    """There a record's time is the earliest that is possible."""
    s = member()
    s.history.insert(0, Began(0, 1, "cluster", ("n1",), 0.0, {}))
    heartbeat(s)
    expire(s, FIRST - 1_500)
    assert "after its last sign of life" in whats(s.judged("I12"))

    s.wait(2_000).say(Watched(s.now_us, "x", s.index, 0, 9, "g", "MemberExpired"))
    assert "after its last sign of life" not in whats(s.judged("I12"))


def test_s9_on_a_cluster_a_new_leader_may_commit_what_the_one_before_had_decided() -> None:
    """An entry is taken for one of the term in which it was seen first."""
    s = member()
    s.history.insert(0, Began(0, 1, "cluster", ("n1",), 0.0, {}))
    heartbeat(s)
    s.term += 1
    expire(s, SESSION_MS)
    s.wait(400).say(Role(s.now_us, "n2", "leader", s.term))
    s.wait(100).say(Watched(s.now_us, "x", s.index, 0, 9, "g", "MemberExpired"))

    assert s.judged("I12").violations == []


def test_a_heartbeat_that_told_of_a_rebalance_renews() -> None:
    s = member()
    s.wait(5_000)
    heartbeat(s, error="REBALANCE_IN_PROGRESS")

    assert "expired 8.998 s after its last sign of life" in whats(
        expire(s, FIRST - 2).judged("I12")
    )


def test_a_heartbeat_that_was_refused_renews_nothing() -> None:
    s = member()
    heartbeat(s)
    s.wait(5_000)
    heartbeat(s, error="NOT_COORDINATOR")

    assert expire(s, SESSION_MS - 5_000).judged("I12").violations == []


def test_every_accepted_call_renews() -> None:
    s = member()
    s.call("OffsetCommit", member_id="a.1")

    assert len(expire(s, FIRST - 10).judged("I12").violations) == 1


def test_an_expiry_soon_after_a_new_leader_is_found() -> None:
    """S9: a new leader arms every deadline in full, whatever the old one had counted."""
    s = member()
    heartbeat(s)
    s.wait(SESSION_MS)
    s.lead("n2")

    assert "after its leader began" in whats(expire(s, FIRST - 2).judged("I12"))


def test_a_leader_may_have_begun_before_it_was_seen_to_lead() -> None:
    """On a busy machine it is seen seconds later, and no deadline was early for that."""
    s = member()
    heartbeat(s)
    began_us = s.now_us
    s.wait(SESSION_MS)
    s.term += 1
    s.say(Role(s.now_us, "n2", "leader", s.term, earliest_us=began_us))

    assert expire(s, 5).judged("I12").violations == []


def test_an_expiry_of_an_ex_leader_is_found() -> None:
    """S1: it was decided in term 2; in term 3 the member had been heard."""
    s = member()
    s.wait(SESSION_MS)
    s.lead("n2")
    heartbeat(s)
    s.term -= 1
    expire(s, 5)

    assert len(s.judged("I12").violations) == 1


def test_a_member_that_never_expires_is_found() -> None:
    s = member()
    heartbeat(s)
    heartbeat(s, "b")
    s.wait(LAST + 2)
    heartbeat(s, "b")

    said = whats(s.judged("I12"))
    assert "a.1 of 'g' gave no sign of life from 60.000 s to 73.115 s and did not expire" in said


def test_an_expiry_that_comes_too_late_is_found() -> None:
    s = member()
    for _ in range(2):
        keep_alive(s, 1, "a.1", "b")
    s.wait(LAST)
    heartbeat(s, "b")
    assert s.judged("I12").violations != []

    s = member()
    keep_alive(s, 1, "a.1", "b")
    s.wait(LAST - 1_500)
    expire(s, 400).judged("I12")
    heartbeat(s, "b")
    assert s.judged("I12").violations == []


def test_a_member_that_is_heard_lives() -> None:
    s = member()
    keep_alive(s, 60, "a.1", "b")

    assert s.judged("I12").violations == []


def test_a_call_that_waits_suspends_the_session() -> None:
    """K-A23: parking does, and the session runs again with the answer."""
    s = member()
    call = s.send("JoinGroup", member_id="a.1")
    keep_alive(s, 60, "b")
    s.hear(call, member_id="a.1", generation=2)
    keep_alive(s, 2, "b")

    assert s.judged("I12").violations == []


@pytest.mark.parametrize(("rounds", "found"), [(12, 0), (16, 1)])
def test_a_join_waits_at_the_service_longer_than_its_client(rounds: int, found: int) -> None:
    """K-A23: the join phase ends it, whoever still listens; from then on the session runs."""
    s = member()
    call = s.send("JoinGroup", member_id="a.1", request_id="r2")
    s.entry(opened(), updated("a.1", request_id="r2"))
    s.hear(call, "unknown")  # the client is cut off, and the service does not hear of that
    keep_alive(s, 20, "b")
    rejoined = (Rejoin("a.1", "r2"), Rejoin("b", ""))
    s.entry(GenerationStarted(2, "range", "a.1", rejoined, (), ()))
    keep_alive(s, rounds, "b")

    assert len(s.judged("I12").violations) == found


def test_a_join_that_was_never_answered_belongs_to_the_member_it_made() -> None:
    s = member()
    s.history = s.history[:1]
    s.now_us -= 1_000
    call = s.send("JoinGroup", instance_id="a", request_id="r1")
    s.wait(1).create()
    s.entry(opened(), joined("a.1", request_id="r1"))
    s.entry(joined("b"))
    keep_alive(s, 40, "b")
    s.hear(call, "unknown")

    assert s.judged("I12").violations == []


def test_elections_begin_every_session_anew() -> None:
    s = member()
    heartbeat(s)
    for node in ("n2", "n1", "n2", "n1"):
        s.wait(SESSION_MS).lead(node)
        heartbeat(s, "b")

    assert s.judged("I12").violations == []


def test_without_a_leader_nobody_can_expire() -> None:
    s = member(lead=False)
    heartbeat(s)
    s.wait(60_000)
    heartbeat(s, "b")

    assert "a.1" not in whats(s.judged("I12"))


def test_a_fault_excuses_as_long_as_it_lasts() -> None:
    s = member()
    heartbeat(s)
    heartbeat(s, "b")
    s.wait(1_000).fault("pause")
    s.wait(9_000).fault("pause", phase="end")
    s.wait(LAST - 1_001)
    heartbeat(s, "b")
    assert "a.1" not in whats(s.judged("I12"))

    s.wait(1_100)
    heartbeat(s, "b")
    assert "a.1" in whats(s.judged("I12"))


def test_wrong_clocks_and_broken_clients_excuse_nothing() -> None:
    s = member()
    heartbeat(s)
    s.fault("clock-rate")
    s.fault("pause", "client:w")
    s.wait(LAST + 2)
    s.fault("clock-rate", phase="end")
    s.fault("pause", "client:w", phase="end")

    assert "a.1" in whats(s.judged("I12"))


def test_a_swap_begins_a_life_of_its_own() -> None:
    s = member()
    heartbeat(s)
    s.wait(8_000).entry(replaced("a.1", "a.2"))
    expire(s, SESSION_MS, "a.2")

    assert "a.2" not in whats(s.judged("I12"))


def test_nothing_is_no_proof() -> None:
    assert Scribe().judged("I12").empty
