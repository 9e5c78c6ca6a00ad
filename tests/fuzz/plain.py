"""One target under plain mutations, with the flags of `guided`: for machines without atheris.

python -m fuzz.plain TARGET CORPUS -max_total_time=N -seed=N -timeout=S -rss_limit_mb=N ...
"""

from __future__ import annotations

import resource
import signal
import sys
import time
from pathlib import Path
from random import Random

from fuzz.mutations import mutated
from fuzz.targets import Target, targets


class Slow(BaseException):
    """One input took longer than it may. Not an Exception: no decoder may take it for its own."""


def _too_slow(*_: object) -> None:
    raise Slow


def fuzz(target: Target, flags: dict[str, str]) -> int:
    """Give mutated bytes until the time is up; the count. Raises what the target raised."""
    random, until = Random(int(flags["seed"])), time.monotonic() + int(flags["max_total_time"])
    count = 0
    for data in mutated(target.seeds, random):
        if time.monotonic() > until:
            break
        count += 1
        signal.setitimer(signal.ITIMER_REAL, float(flags["timeout"]))
        try:
            target(data)
        except BaseException:
            Path(flags["artifact_prefix"], f"crash-{count}").write_bytes(data)
            raise
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    return count


def main() -> None:
    """Bound memory and time, then fuzz."""
    name, _corpus, *given = sys.argv[1:]
    flags = dict(flag.lstrip("-").split("=", 1) for flag in given)
    memory = int(flags["rss_limit_mb"]) << 20
    resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    signal.signal(signal.SIGALRM, _too_slow)
    print(f"Done {fuzz(targets()[name], flags)} runs", file=sys.stderr)


if __name__ == "__main__":
    main()
