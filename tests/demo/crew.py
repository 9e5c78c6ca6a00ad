"""The workers as processes: started, stopped, frozen, thawed, and never left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from demo.settings import Place
from harness.poll import until

if TYPE_CHECKING:
    from demo.cluster import Cluster

STOP_S: Final = 20.0


class Crew:
    """All workers by name; a name is an instance id."""

    def __init__(self, place: Place, cluster: Cluster) -> None:
        self._place, self._cluster = place, cluster
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def size(self) -> int:
        """How many workers run."""
        return sum(process.poll() is None for process in self._processes.values())

    def start(self, name: str) -> None:
        """Start a worker under this name; an earlier one must have ended."""
        options = {
            "--store": self._place.store,
            "--diary": self._place.diary,
            "--witness": self._place.witness(name),
        }
        command = [sys.executable, "-P", "-m", "demo.worker", name, *self._cluster.worker_options()]
        command += [str(part) for pair in options.items() for part in pair]
        with self._place.worker_log(name).open("ab") as log:
            self._processes[name] = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )

    def stop(self, *names: str) -> None:
        """Ask workers to stop for a restart, all at once, and wait. Raises if one ends badly."""
        for name in names:
            self._processes[name].send_signal(signal.SIGTERM)
        for name in names:
            code = self._processes[name].wait(STOP_S)
            if code:
                log = self._place.worker_log(name)
                raise RuntimeError(f"{name} ended with code {code} instead of 0; see {log}")

    def stop_all(self) -> None:
        """Ask everybody who still runs."""
        self.stop(*(name for name, process in self._processes.items() if process.poll() is None))

    def freeze(self, name: str) -> None:
        """Stop a worker where it is, and return when the system says that it stands still."""
        process = self._processes[name]
        process.send_signal(signal.SIGSTOP)
        until(lambda: _state(process.pid) == "T", f"{name} is frozen")

    def thaw(self, name: str) -> None:
        """Let it go on as if nothing had happened."""
        self._processes[name].send_signal(signal.SIGCONT)

    def refuse_dead(self) -> None:
        """Raise if a worker has ended by itself."""
        for name, process in self._processes.items():
            if process.poll() not in {None, 0}:
                log = self._place.worker_log(name)
                raise RuntimeError(f"{name} ended with code {process.returncode}; see {log}")

    def kill(self) -> None:
        """End what still runs, frozen or not."""
        for process in self._processes.values():
            if process.poll() is None:
                process.kill()
                process.wait()


def _state(pid: int) -> str:
    """The letter that the system has for what a process does: T is stopped."""
    if sys.platform == "linux":
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    command = ["ps", "-o", "state=", "-p", str(pid)]
    return os.fsdecode(subprocess.check_output(command)).strip()[:1]
