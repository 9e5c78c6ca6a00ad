"""Runs what an image says, as a container would: its user, its first process, a read-only root.

Without a container's own network: addresses are of this machine. Needs what `image.build` needs.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from harness.poll import until
from image.build import mounts, path_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from image.build import Image

SECONDS_MAX: Final = 120.0


@dataclass(frozen=True)
class Container:
    """What is run, with what, and who sees which folder where."""

    image: Image
    command: tuple[str, ...]
    """What follows the image's entrypoint."""
    environment: Mapping[str, str] = field(default_factory=dict)
    volumes: Mapping[str, Path] = field(default_factory=dict)
    """By the place in the container: a file or a folder of this machine."""
    user: str = ""
    """`UID:GID`; empty: the image's."""
    entrypoint: tuple[str, ...] | None = None
    """None: the image's."""

    def start(self, log: Path) -> subprocess.Popen[bytes]:
        """Start it; what it says goes into a file."""
        stage = self.image.stage
        env = {**stage.environment, **self.environment, "PATH": path_of(stage), "HOME": "/"}
        with log.open("ab") as stream:
            return subprocess.Popen(
                ["unshare", "--mount", "--pid", "--fork", "--kill-child", *self._shell()],
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
            )

    def run(self, log: Path) -> int:
        """Run it to its end; return its exit code."""
        return self.start(log).wait(SECONDS_MAX)

    def _shell(self) -> list[str]:
        """Make the shell's command that furnishes the root, makes it read-only, and enters it."""
        root = shlex.quote(str(self.image.root))
        entry = self.entrypoint
        words = [*(self.image.stage.words("ENTRYPOINT") if entry is None else entry), *self.command]
        script = [
            f"mount --bind {root} {root}",
            *mounts(self.image.root, self.volumes),
            f"mount -t proc proc {root}/proc",
            f"mount -t tmpfs tmpfs {root}/tmp",  # noqa: S108 - the container's own
            f"mount -o remount,ro,bind {root}",
            f"cd {root}",
            f"exec chroot . setpriv {' '.join(self._rights())} {shlex.join(words)}",
        ]
        return ["/bin/sh", "-euc", "\n".join(script)]

    def _rights(self) -> list[str]:
        """Name whom it runs as: with no right of root, as compose.yaml and the chart ask for."""
        user, _, group = (self.user or self.image.stage.told["USER"]).partition(":")
        if user == "0":
            return ["--clear-groups"]
        bare = ["--no-new-privs", "--inh-caps=-all", "--bounding-set=-all", "--clear-groups"]
        return [f"--reuid={user}", f"--regid={group}", *bare]


def first_process(started: subprocess.Popen[bytes]) -> int:
    """Return the number that this machine gives the container's process 1, which gets signals."""
    place = Path(f"/proc/{started.pid}/task/{started.pid}/children")
    until(place.read_text, "the container's first process")
    return int(place.read_text().split()[0])


def stop(started: subprocess.Popen[bytes], number: int) -> int:
    """Send a signal to process 1, as `docker stop` does; return the exit code."""
    if started.poll() is None:
        os.kill(first_process(started), number)
    return started.wait(SECONDS_MAX)


def mode(path: Path) -> str:
    """Return owner and mode of a file, as `stat` writes them."""
    seen = path.stat()
    return json.dumps([seen.st_uid, seen.st_gid, oct(seen.st_mode & 0o777)])
