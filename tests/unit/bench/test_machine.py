"""Reading a process's processor time and context switches, on this very process."""

import os
import threading
import time
from pathlib import Path

import pytest

from bench import machine

STATUS = "Name:\tpython\nvoluntary_ctxt_switches:\t150\nnonvoluntary_ctxt_switches:\t7\n"


def test_switches_of_both_kinds_are_added() -> None:
    assert machine._switches(STATUS) == 157


def test_the_processor_time_is_the_one_that_the_process_reads_itself() -> None:
    """Another process's clock is the same one, and finer than a tick of 10 ms."""
    before = time.process_time()
    read = machine.cpu_seconds(os.getpid())
    assert before <= read <= time.process_time()


def test_every_thread_is_seen() -> None:
    release = threading.Event()
    thread = threading.Thread(target=release.wait)
    thread.start()
    seen = machine.switches(os.getpid())
    release.set()
    thread.join()
    assert thread.native_id in seen


def test_a_process_that_is_gone_is_an_error_not_a_zero() -> None:
    with pytest.raises(OSError, match="Invalid argument"):
        machine.cpu_seconds(2**22 + 1)


def test_the_holes_of_a_file_take_no_disk(tmp_path: Path) -> None:
    """LMDB's lock file and a journal's reserve may have any length."""
    with (tmp_path / "holes").open("wb") as file:
        file.truncate(1 << 30)
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "full").write_bytes(b"x" * 100_000)
    assert 100_000 <= machine.disk_bytes(tmp_path) < 1 << 20
