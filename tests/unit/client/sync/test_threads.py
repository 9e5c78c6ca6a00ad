"""The loop's thread, as a blocking call waits for it."""

import _thread
import asyncio
import signal
import threading
from collections.abc import Iterator

import pytest

from holdfast.client.sync.threads import THREAD

WITHIN_S = 10.0


@pytest.fixture
def _heard() -> Iterator[None]:
    """Whoever starts a program in the background has it ignore Ctrl-C, and Python leaves it so."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_heard")
def test_a_signal_that_wakes_nobody_ends_a_blocking_call_all_the_same() -> None:
    """A second Ctrl-C may come between Python's look for signals and the wait of a call.

    `interrupt_main` is such a signal: it is noted, and no system call is interrupted by it.
    """
    waiting, waited_to_its_end = threading.Event(), threading.Event()

    async def endless() -> None:
        waiting.set()
        await asyncio.wait([asyncio.get_running_loop().create_future()], timeout=WITHIN_S)
        waited_to_its_end.set()

    def interrupt() -> None:
        waiting.wait()
        _thread.interrupt_main()

    interrupting = threading.Thread(target=interrupt)
    interrupting.start()
    with pytest.raises(KeyboardInterrupt):
        THREAD.run(endless())
    interrupting.join()

    assert not waited_to_its_end.is_set()


def test_a_time_out_of_the_work_itself_is_the_works() -> None:
    async def late() -> None:
        raise TimeoutError("its own")

    with pytest.raises(TimeoutError, match="its own"):
        THREAD.run(late())
