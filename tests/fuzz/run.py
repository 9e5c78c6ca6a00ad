"""`./dev fuzz [TARGET...]`: hostile bytes for every decoder of the network and of the disk.

Each target runs in a process of its own for its share of the time, guided by coverage where
atheris is installed, else by plain mutations. No input may crash it, raise anything but a refusal,
take over a second, or more memory than 512 MiB. What breaks one is kept, and the command that
replays it is printed. Exit codes: 0 nothing was found, 1 something was.
"""

from __future__ import annotations

import argparse
import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from typing import Final, NamedTuple

from fuzz.targets import targets

MEMORY_MIB: Final = 512
INPUT_S: Final = 1
GRACE_S: Final = 60
GUIDED: Final = importlib.util.find_spec("atheris") is not None


class Ended(NamedTuple):
    """What became of one target."""

    name: str
    inputs: int
    problem: str


def arguments() -> argparse.Namespace:
    """Read the command line."""
    names = list(targets())
    parser = argparse.ArgumentParser(prog="./dev fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of: {' '.join(names)}")
    parser.add_argument("--seconds", type=int, default=120, help="in all; default 120")
    parser.add_argument("--seed", type=int, default=1, help="of the mutations; default 1")
    parser.add_argument("--replay", type=Path, help="give one kept input to one TARGET")
    parser.add_argument("--out", type=Path, default=Path("fuzz-out"), help="default: fuzz-out")
    given = parser.parse_args()
    for name in given.targets:
        if name not in names:
            parser.error(f"there is no target {name!r}; there are: {' '.join(names)}")
    if given.replay and len(given.targets) != 1:
        parser.error("--replay needs exactly one TARGET")
    return given


def fuzz(name: str, given: argparse.Namespace, seconds: int) -> Ended:
    """Run one target in its own process, and read what it said."""
    folder = given.out.resolve() / name
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "fuzz.guided" if GUIDED else "fuzz.plain", name]
    command += [str(folder / "corpus")]
    command += [
        f"-max_total_time={seconds}",
        f"-seed={given.seed}",
        f"-timeout={INPUT_S}",
        f"-rss_limit_mb={MEMORY_MIB}",
        f"-artifact_prefix={folder}/",
    ]
    try:
        asked = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=seconds + GRACE_S
        )
    except subprocess.TimeoutExpired:
        return Ended(name, 0, f"did not end within {seconds + GRACE_S} s")
    return Ended(name, _inputs(asked.stderr), _problem(name, folder, asked))


def _inputs(said: str) -> int:
    counts = [int(count) for count in re.findall(r"^(?:#|Done )(\d+)", said, flags=re.MULTILINE)]
    return max(counts, default=0)


def _problem(name: str, folder: Path, asked: subprocess.CompletedProcess[str]) -> str:
    if asked.returncode == 0:
        return ""
    (folder / "said.txt").write_text(asked.stdout + asked.stderr)
    kept = sorted(folder.glob("*-*"), key=lambda path: path.stat().st_mtime)
    if not kept:
        return f"ended with {asked.returncode}; see {folder / 'said.txt'}"
    return f"./dev fuzz {name} --replay {kept[-1]}"


def main() -> int:
    """Fuzz what was asked for; print a line for each target."""
    given = arguments()
    if given.replay:
        accepted = targets()[given.targets[0]](given.replay.read_bytes())
        print("accepted" if accepted else "refused")
        return 0
    names = given.targets or list(targets())
    share = max(1, given.seconds // len(names))
    print(f"{len(names)} targets, {share} s each, {'by coverage' if GUIDED else 'plain mutations'}")
    ended = []
    for name in names:
        ended.append(fuzz(name, given, share))
        print(f"{name:<28}{ended[-1].inputs:>10,} inputs  {ended[-1].problem or 'ok'}", flush=True)
    found = [each for each in ended if each.problem]
    print(f"{sum(each.inputs for each in ended):,} inputs, {len(found)} targets broke")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
