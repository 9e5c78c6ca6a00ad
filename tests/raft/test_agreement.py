"""S3, S6: a node whose state differs from the majority's stops, and only that one."""

from __future__ import annotations

from contextlib import suppress

from harness.cluster import HEARTBEAT, Cluster
from harness.teeth import Switches, first_harm, guards
from holdfast.raft.api import EngineStopped
from holdfast.raft.core.context import Switch

GOOD, BAD = b"the state of two", b"the state of one"


def publish(c: Cluster, **digests: bytes) -> None:
    for node, digest in digests.items():
        c.engine(node).publish(512, digest)
    for _ in range(4):
        with suppress(EngineStopped):
            c.pump(seconds=HEARTBEAT)


def stopped(c: Cluster) -> str:
    for node in "ABC":
        c.consumer(node).evolve()
    return "".join(node for node in "ABC" if c.consumer(node).stopped)


@guards(Switch.S3_AGREE, harm="it_goes_on")
def test_s3_the_one_that_differs_stops_leader_or_not(switches: Switches) -> str:
    c = Cluster(switches=switches)
    c.elect("A")
    publish(c, A=BAD, B=GOOD, C=GOOD)
    return first_harm(it_goes_on="A" not in stopped(c), others_stop=stopped(c) not in {"", "A"})


def test_s3_two_that_differ_stop_nobody_because_nothing_is_proved() -> None:
    c = Cluster()
    publish(c, A=BAD, B=GOOD)

    assert stopped(c) == ""


def test_s3_it_does_not_matter_who_is_first() -> None:
    """A digest of a peer may arrive before this node has evolved so far itself."""
    c = Cluster()
    publish(c, B=GOOD, C=GOOD)
    publish(c, A=BAD)

    assert stopped(c) == "A"


def test_s3_equal_digests_stop_nobody() -> None:
    c = Cluster()
    publish(c, A=GOOD, B=GOOD, C=GOOD)

    assert stopped(c) == ""
