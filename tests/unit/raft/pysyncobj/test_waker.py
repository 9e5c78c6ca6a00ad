"""Where the tick waits: no wake-up is lost, and none costs a thread more than it must."""

from __future__ import annotations

import threading

import pytest

from holdfast.raft.pysyncobj.waker import QueuePark, Waker

LONG_S = 60.0


class Park:
    """Notes how long it was to wait, and who was to be woken."""

    def __init__(self) -> None:
        self.waits, self.calls = list[float](), 0

    def park(self, seconds: float) -> None:
        self.waits.append(seconds)

    def unpark(self) -> None:
        self.calls += 1


def in_another_thread(waker: Waker) -> None:
    thread = threading.Thread(target=waker.wake)
    thread.start()
    thread.join()


def test_the_thread_that_ticks_does_not_ring_for_itself() -> None:
    """Its next wait is none, which costs nothing."""
    park = Park()
    waker = Waker(lambda: None, park)
    waker.poll(1.0)
    waker.wake()
    assert (waker.is_woken, park.calls) == (True, 0)
    waker.poll(1.0)
    waker.poll(1.0)
    assert park.waits == [1.0, 0.0, 1.0]


def test_other_threads_ring_once_for_a_wait() -> None:
    park = Park()
    waker = Waker(lambda: None, park)
    waker.poll(1.0)
    for _ in range(3):
        in_another_thread(waker)
    assert park.calls == 1
    waker.poll(1.0)
    in_another_thread(waker)
    assert park.calls == 2


def test_a_call_that_comes_during_the_work_ends_the_next_wait() -> None:
    """What it is about may have come behind what the work has looked at."""
    park = Park()
    waker = Waker(lambda: in_another_thread(waker), park)
    waker.poll(1.0)
    waker.poll(1.0)
    assert park.waits == [1.0, 0.0]


@pytest.mark.parametrize("calls", [1, 5])
def test_a_queue_wakes_who_waits_on_it(calls: int) -> None:
    park, worked = QueuePark(), list[None]()
    waker = Waker(lambda: worked.append(None), park)
    threads = [threading.Timer(0.02, waker.wake) for _ in range(calls)]
    for thread in threads:
        thread.start()
    waker.poll(LONG_S)
    for thread in threads:
        thread.join()
    assert worked == [None]
