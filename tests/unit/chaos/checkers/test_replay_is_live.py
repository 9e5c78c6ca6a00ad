"""INV-6: nodes that differ at one index are found, and a node that differs from the log itself."""

from typing import Literal

from holdfast.chaos.history.happenings import Applied, Recorded
from holdfast.chaos.history.records import record_of
from holdfast.coordinator.kernel.apply import replay
from holdfast.coordinator.model.events import ClusterFormed, SettingChange
from holdfast.coordinator.model.state import State
from holdfast.storage.codec.event_codec import CHAIN_START, chain_hash, encode_record
from holdfast.storage.codec.state_image import digest_of
from unit.chaos.scribe import Scribe, joined, offsets, opened, topic, whats


def logged() -> Scribe:
    """A log from the cluster's first record on."""
    s = Scribe()
    s.entry(ClusterFormed("c", (SettingChange("group.max_size", "10"),)), group="")
    s.entry(topic(4), group="")
    s.create()
    s.entry(opened(), joined("a"))
    return s


def digest(s: Scribe, upto: int) -> str:
    """What a node that holds the log up to an index says: its state's digest and chain (S3)."""
    records = [record_of(e) for e in s.history if isinstance(e, Recorded) and e.index <= upto]
    head = CHAIN_START
    for record in records:
        head = chain_hash(head, encode_record(record))
    state = replay(State(), tuple(records))._replace(applied_index=upto)
    return digest_of(state).to_bytes(8, "big").hex() + head.hex()


def applied(
    s: Scribe,
    node: str,
    index: int,
    text: str,
    via: Literal["live", "restart", "install", "replay"] = "live",
) -> None:
    s.say(Applied(s.now_us, node, index, text, via))


def test_equal_digests_pass() -> None:
    s = logged()
    for node in ("n1", "n2", "n3"):
        applied(s, node, 4, digest(s, 4))
    applied(s, "n2", 4, digest(s, 4), via="restart")
    applied(s, "n1", 2, digest(s, 2))

    verdict = s.judged("I6")

    assert verdict.violations == []
    assert verdict.checked == {"indexes compared": 1, "digests folded again": 5}


def test_a_node_that_differs_is_found() -> None:
    s = Scribe()
    applied(s, "n1", 7, "aa")
    applied(s, "n2", 7, "bb")
    applied(s, "n3", 8, "cc")

    assert whats(s.judged("I6")) == "at index 7 n1 (live) has digest aa, n2 (live) has bb"


def test_a_node_that_differs_from_itself_after_a_restart_is_found() -> None:
    s = Scribe()
    applied(s, "n1", 7, "aa")
    applied(s, "n1", 7, "bb", via="restart")

    assert "n1 (restart) has bb" in whats(s.judged("I6"))


def test_nodes_that_agree_on_a_wrong_state_are_found() -> None:
    """All have it, so only the fold of the log away from them shows it."""
    s = logged()
    wrong = "00" * 8 + digest(s, 4)[16:]
    for node in ("n1", "n2", "n3"):
        applied(s, node, 4, wrong)

    assert len(s.judged("I6").violations) == 3


def test_an_index_without_records_of_its_own_is_folded_too() -> None:
    """A leader's no-op moves the applied index, and nothing else."""
    s = logged()
    s.index += 1
    s.entry(offsets(1))
    applied(s, "n1", 5, digest(s, 5))

    verdict = s.judged("I6")

    assert verdict.violations == []
    assert verdict.checked["digests folded again"] == 1


def test_a_log_that_cannot_be_folded_is_found() -> None:
    s = logged()
    s.entry(joined("a"))
    applied(s, "n1", 5, "aa")

    assert "the log cannot be folded: " in whats(s.judged("I6"))


def test_records_without_their_bytes_are_not_folded() -> None:
    s = logged()
    s.history = [e._replace(payload="") if isinstance(e, Recorded) else e for e in s.history]
    applied(s, "n1", 4, "aa")

    verdict = s.judged("I6")

    assert verdict.violations == []
    assert verdict.empty


def test_a_digest_that_nobody_else_has_is_no_proof() -> None:
    s = Scribe()
    applied(s, "n1", 7, "aa")

    assert s.judged("I6").empty
