"""S10, S19: the election timer, which the overlay and the engine each compare with the clock."""

from __future__ import annotations

from unittest import mock

from harness.cluster import SETTINGS, Cluster


def timer_fires_within_the_tick(c: Cluster, node: str) -> None:
    """The timer runs out after the overlay has looked at it, and before the engine does.

    A thread that waits for a processor, or for a sync, reads its clock so late.
    """
    overlay = c.engine(node).overlay
    overlay.state.election_deadline = c.nodes[node].clock() + 0.01
    looked = overlay.elections.tick

    def tick() -> None:
        looked()
        c.clock.advance(0.02)

    with mock.patch.object(overlay.elections, "tick", tick):
        c.tick(node)


def test_s19_a_timer_that_fires_within_a_tick_makes_no_candidate_without_a_vote() -> None:
    """A node that still forms would vote for itself, and after a restart for another."""
    c = Cluster(formed=False)
    c.connect_all()
    c.tick("A")
    timer_fires_within_the_tick(c, "A")

    assert not c.engine("A").overlay.state.is_candidate
    assert c.engine("A").status().term == 0


def test_s10a_a_timer_that_fires_within_a_tick_asks_for_pre_votes_first() -> None:
    """E-13: the next tick asks. A term that nobody had wanted would depose the leader."""
    c = Cluster()
    c.elect("A")
    term = c.engine("B").status().term
    c.clock.advance(SETTINGS.election_max)
    timer_fires_within_the_tick(c, "B")
    assert c.engine("B").status().term == term

    c.tick("B")
    assert c.engine("B").status().term == term
    assert c.engine("B").overlay.state.election_deadline > c.nodes["B"].clock()


def test_s10b_a_node_without_peers_leads_without_waiting() -> None:
    """At its first start, and at later ones: nobody else can lead, or was promised anything."""
    c = Cluster("A", formed=False)
    c.tick("A")
    c.clock.advance(0.001)
    c.tick("A")
    assert c.engine("A").status().role == "leader"

    c.restart("A")
    c.clock.advance(0.001)
    c.tick("A")
    assert c.engine("A").status().role == "leader"


def test_s10b_a_node_that_lost_its_peers_from_its_configuration_keeps_its_promise() -> None:
    """The disks that it formed a cluster with may still have a leader, which counts on it."""
    c = Cluster()
    c.elect("A")
    c.crash("B")
    c.ids = "B"
    c.start("B")
    c.clock.advance(SETTINGS.election_min - 0.01)
    c.tick("B")
    assert not c.engine("B").overlay.state.is_candidate
    assert c.engine("B").status().role == "follower"


# -- the leader's connection ends: a hint that its process has ended --

STEP = 0.005


def wait(c: Cluster, seconds: float, among: str) -> str:
    """Let time pass by small steps with all timers running; return who leads in the end, or ''."""
    for _ in range(round(seconds / STEP)):
        c.pump(among, seconds=STEP, calm=False)
    return "".join(node for node in among if c.engine(node).status().role == "leader")


def led_by(leader: str) -> Cluster:
    """Make a cluster with a leader that all have just heard, and have drawn the longest timer."""
    c = Cluster()
    c.elect(leader)
    c.pump(rounds=2, seconds=SETTINGS.heartbeat + STEP)
    c.pump(rounds=2, calm=False)
    for node in c.ids:
        overlay = c.engine(node).overlay
        if node != leader:
            overlay.elections.heard_leader()
            overlay.state.election_deadline = c.nodes[node].clock() + SETTINGS.election_max
    return c


def test_s10a_who_sees_the_leaders_connection_end_stands_right_after_the_minimum() -> None:
    """Kill -9 closes sockets. Nobody asks before the minimum is over; then the first by name."""
    c = led_by("B")
    term = c.engine("A").status().term
    c.crash("B")
    assert wait(c, SETTINGS.election_min - 2 * STEP, "AC") == ""
    assert {c.engine(node).status().term for node in "AC"} == {term}

    assert wait(c, SETTINGS.heartbeat, "AC") == "A"
    assert {c.engine(node).status().term for node in "AC"} == {term + 1}


def test_s10a_the_next_by_name_stands_a_turn_later_if_the_first_cannot() -> None:
    """The first may be down as well, or lack entries. Turns split no votes."""
    c = led_by("B")
    term = c.engine("C").status().term
    with mock.patch.object(c.engine("A").overlay.elections, "may_campaign", return_value=False):
        c.crash("B")
        assert wait(c, SETTINGS.election_min + SETTINGS.heartbeat, "AC") == ""
        assert wait(c, SETTINGS.heartbeat, "AC") == "C"
    assert c.engine("C").status().term == term + 1


def test_s10a_what_the_dead_leader_had_sent_does_not_hide_its_end() -> None:
    """Its last bytes may be read after the end of the other connection was seen."""
    c = led_by("B")
    c.engine("B").overlay.replication.send_round()
    c.engine("B").overlay.completion.run()
    (heartbeat,) = c.network.waiting("B", "A")
    c.crash("B")
    c.engine("A").on_message("B", heartbeat)
    assert wait(c, SETTINGS.election_min + SETTINGS.heartbeat, "AC") == "A"


def test_s10a_a_leader_that_dials_again_is_not_deposed() -> None:
    """Its next heartbeat starts the timer anew, drawn by chance as before."""
    c = led_by("A")
    term, overlay = c.engine("A").status().term, c.engine("B").overlay
    timeouts = set()
    for _ in range(20):
        c.network.cut("A", "B")
        assert wait(c, SETTINGS.heartbeat, "ABC") == "A"
        c.network.connect("A", "B")
        assert wait(c, 2 * SETTINGS.heartbeat, "ABC") == "A"
        timeouts.add(round(overlay.state.election_deadline - overlay.elections.heard_at, 6))
    assert len(timeouts) > 1
    c.network.cut("A", "B")
    assert wait(c, 2 * SETTINGS.election_max, "ABC") == "A"
    assert {c.engine(node).status().term for node in "ABC"} == {term}


def test_s10a_a_connection_that_begins_again_takes_the_hint_back() -> None:
    """A reset ends connections as kill -9 does, but the leader's process answers the next dial."""
    c = led_by("B")
    state, elections = c.engine("A").overlay.state, c.engine("A").overlay.elections
    timeouts = set()
    for _ in range(5):
        c.network.cut("A", "B")
        assert state.election_deadline == elections.heard_at + elections._turn()
        c.network.connect("A", "B")
        timeouts.add(state.election_deadline - elections.heard_at)
        state.election_deadline = elections.heard_at + SETTINGS.election_max
    assert len(timeouts) == 5
    assert min(timeouts) >= SETTINGS.election_min
    assert max(timeouts) <= SETTINGS.election_max + 1e-6


def test_s10a_the_end_of_another_followers_connection_is_no_hint() -> None:
    """Only the leader's process is the one that an election would replace."""
    c = led_by("B")
    deadline = c.engine("A").overlay.state.election_deadline
    c.network.cut("A", "C")
    assert c.engine("A").overlay.state.election_deadline == deadline


def test_s10a_a_timer_that_runs_out_sooner_is_not_put_off_by_the_hint() -> None:
    """The later turns are not later than the timer that was drawn."""
    c = led_by("B")
    state, heard_at = c.engine("C").overlay.state, c.engine("C").overlay.elections.heard_at
    state.election_deadline = sooner = heard_at + SETTINGS.election_min + STEP
    c.network.cut("B", "C")
    assert state.election_deadline == sooner


# -- both survivors stand: one of them goes first --


def test_s10a_two_that_ask_at_once_do_not_split_their_votes() -> None:
    """A thread that wakes up late asks when the next one by name does. The logs are equal."""
    c = led_by("B")
    term = c.engine("A").status().term
    c.crash("B")
    c.clock.advance(SETTINGS.election_min + STEP)
    for node in "AC":
        c.engine(node).overlay.state.election_deadline = 0
        c.tick(node)
    assert len(c.network.waiting("A", "C")) == len(c.network.waiting("C", "A")) == 1

    assert wait(c, SETTINGS.heartbeat, "AC") == "A"
    assert {c.engine(node).status().term for node in "AC"} == {term + 1}


def test_s10a_who_has_won_its_pre_votes_grants_none() -> None:
    """Its candidacy is a matter of its next sync; the other one's would take its voter away."""
    c = led_by("A")
    c.crash("A")
    c.clock.advance(SETTINGS.election_min + STEP)
    c.engine("C").overlay.state.election_deadline = 0
    c.tick("C")
    c.exchange("C", "B")
    c.engine("B").overlay.state.election_deadline = 0
    c.tick("B")
    c.network.deliver("B", "C")
    c.engine("C").overlay.completion.run()
    assert c.network.waiting("C", "B") == []

    assert wait(c, SETTINGS.heartbeat, "BC") == "C"


def test_s10a_who_grants_a_pre_vote_leaves_the_time_to_be_elected() -> None:
    """Two syncs of a slow disk take longer than the turn between two followers."""
    c = led_by("B")
    c.crash("B")
    c.clock.advance(SETTINGS.election_min + STEP)
    c.engine("A").overlay.state.election_deadline = 0
    c.tick("A")
    c.network.deliver("A", "C")
    stands_in = c.engine("C").overlay.state.election_deadline - c.nodes["C"].clock()
    assert stands_in >= 2 * SETTINGS.heartbeat


def test_s10a_a_question_that_comes_too_early_is_answered_when_the_minimum_is_over() -> None:
    """The last heartbeat reached C a little later than A, whose next question is a timer away."""
    c = led_by("B")
    c.engine("C").overlay.elections.heard_at += SETTINGS.heartbeat / 2
    c.crash("B")
    assert wait(c, SETTINGS.election_min + SETTINGS.heartbeat / 2 - STEP, "AC") == ""
    assert wait(c, SETTINGS.heartbeat, "AC") == "A"


def test_s10a_a_question_is_forgotten_when_the_leader_is_heard() -> None:
    """It was asked by a node that had lost the leader alone."""
    c = led_by("B")
    c.network.cut("A", "B")
    c.engine("A").overlay.state.election_deadline = 0
    c.engine("A").overlay.elections.heard_at = 0
    c.tick("A")
    c.network.deliver("A", "C")
    c.pump(rounds=2, seconds=SETTINGS.heartbeat + STEP)
    c.crash("B")
    term = c.engine("C").status().term
    c.clock.advance(SETTINGS.election_min + STEP)
    c.calm()
    c.tick("C")
    assert c.network.waiting("C", "A") == []
    assert c.engine("C").status().term == term


def test_s10a_who_waited_for_an_attempt_that_fails_goes_on_without_asking_again() -> None:
    """A message may be lost, or travel in one direction only."""
    c = led_by("B")
    c.crash("B")
    c.clock.advance(SETTINGS.election_min + STEP)
    for node in "AC":
        c.engine(node).overlay.state.election_deadline = 0
        c.tick(node)
    c.network.lose("A", "C")

    assert wait(c, SETTINGS.heartbeat, "AC") == ""
    assert wait(c, 2 * SETTINGS.heartbeat, "AC") == "C"
