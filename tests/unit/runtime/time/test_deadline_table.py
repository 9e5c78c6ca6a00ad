"""The table of deadlines: fires what is due, once, with the numbers that S9 asks for."""

from holdfast.coordinator.model.effects import Answer, Arm, Cancel, Renew
from holdfast.coordinator.model.replies import HeartbeatReply
from holdfast.coordinator.model.volatile import JOIN_PHASE, SESSION, DeadlineKey
from holdfast.runtime.time.deadline_table import DeadlineTable, Due

M = DeadlineKey(SESSION, "m")
N = DeadlineKey(SESSION, "n")


def armed(*arms: Arm) -> DeadlineTable:
    table = DeadlineTable()
    for arm in arms:
        table.carry_out("g", arm, 0)
    return table


def test_a_deadline_fires_once_at_its_time() -> None:
    table = armed(Arm(M, 7, 100))

    assert table.due(99) == []
    assert table.due(100) == [Due("g", M, 7, 0)]
    assert table.due(100) == []
    assert len(table) == 0


def test_what_is_due_comes_in_order_of_time() -> None:
    table = armed(Arm(M, 1, 100), Arm(N, 2, 50))

    assert [due.key for due in table.due(1_000)] == [N, M]


def test_a_renewed_session_runs_from_then_and_carries_the_count() -> None:
    table = armed(Arm(M, 7, 100))
    table.carry_out("g", Renew("m", 100, 1), 60)
    table.carry_out("g", Renew("m", 100, 2), 90)

    assert table.due(189) == []
    assert table.due(190) == [Due("g", M, 7, 2)]


def test_a_renewal_may_shorten_a_session() -> None:
    table = armed(Arm(M, 7, 1_000))
    table.carry_out("g", Renew("m", 50, 1), 10)

    assert table.due(60) == [Due("g", M, 7, 1)]
    assert table.due(5_000) == []


def test_a_renewal_says_whether_somebody_must_look_earlier_than_was_planned() -> None:
    """S9: a session that ends earlier than any other would else be noticed late."""
    table = armed(Arm(M, 7, 1_000))

    assert not table.renew("g", Renew("m", 1_000, 1), 10)
    assert table.renew("g", Renew("m", 50, 2), 20)
    assert not table.renew("g", Renew("stranger", 1, 1), 30)
    assert table.next_due_ms() == 70


def test_arming_again_replaces() -> None:
    table = armed(Arm(M, 7, 100), Arm(M, 8, 300))

    assert table.due(200) == []
    assert table.due(300) == [Due("g", M, 8, 0)]


def test_arming_again_for_the_same_moment_fires_once() -> None:
    table = armed(Arm(M, 7, 100), Arm(M, 8, 100))

    assert table.due(100) == [Due("g", M, 8, 0)]


def test_cancelled_is_cancelled() -> None:
    table = armed(Arm(M, 7, 100))
    table.carry_out("g", Cancel(M), 0)
    table.carry_out("g", Cancel(N), 0)

    assert table.due(1_000) == []


def test_what_does_not_run_cannot_be_renewed() -> None:
    """A heartbeat after the deadline fired must be decided: there it counts against it (S9)."""
    table = armed(Arm(M, 7, 100))
    table.carry_out("g", Renew("m", 100, 1), 50)
    table.due(150)

    table.carry_out("g", Renew("m", 100, 2), 151)
    assert table.due(10_000) == []


def test_s9_a_stall_puts_everything_off() -> None:
    """The process stood still for 500 ms and heard nobody: nobody may be expired for that."""
    table = armed(Arm(M, 7, 100), Arm(DeadlineKey(JOIN_PHASE), 8, 200))
    table.carry_out("g", Renew("m", 100, 1), 50)
    table.shift(500)

    assert table.due(649) == []
    assert [due.key for due in table.due(650)] == [M]
    assert table.next_due_ms() == 700


def test_s9_a_stall_puts_off_only_what_ran_then() -> None:
    """What is armed or renewed afterwards has its own time, by the clock that went on."""
    table = armed(Arm(M, 7, 100), Arm(N, 8, 100))
    table.shift(500)
    table.carry_out("g", Renew("m", 30, 1), 550)
    table.carry_out("g", Arm(DeadlineKey(JOIN_PHASE), 9, 40), 550)

    assert table.at_ms("g", M) == 580
    assert table.due(579) == []
    assert [due.key for due in table.due(600)] == [M, DeadlineKey(JOIN_PHASE), N]


def test_groups_do_not_share_deadlines() -> None:
    table = armed(Arm(M, 7, 100))
    table.carry_out("h", Arm(M, 1, 100), 0)
    table.forget_group("g")

    assert table.due(100) == [Due("h", M, 1, 0)]


def test_next_due_is_never_late() -> None:
    table = armed(Arm(M, 7, 100), Arm(N, 8, 60))

    assert table.next_due_ms() == 60
    table.clear()
    assert table.next_due_ms() is None


def test_answers_are_not_its_business() -> None:
    table = DeadlineTable()
    table.carry_out("g", Answer(1, HeartbeatReply(None)), 0)

    assert len(table) == 0
