"""`./dev demo`: the main job on a real cluster, with faults, measured, drawn and proven.

Three nodes and six workers on this machine index the standard library while workers are bounced,
the leading node is killed, a worker is frozen, and the group grows and shrinks. Then Spark replays
the log. Ends with 0 only if everything that was promised held (see `phases` and `proof`).
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from pathlib import Path

from demo import job, phases, proof, table
from demo.cluster import Cluster
from demo.crew import Crew
from demo.diary import Diary, Kind
from demo.group import CLASSIC, PROTOCOLS, Protocol
from demo.measure import intervals, moves
from demo.settings import Place
from demo.store import Store

PACE_S = 0.3


class Progress:
    """Prints what happens, with the seconds since the start."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    @property
    def seconds(self) -> float:
        """Since the start."""
        return time.monotonic() - self._began

    def __call__(self, text: str) -> None:
        print(f"[{self.seconds:5.1f} s] {text}", flush=True)


def run(place: Place, protocol: Protocol, say: Progress) -> bool:
    """The whole demo; whether everything held."""
    proof.require_spark()
    cluster = Cluster(place, protocol)
    cluster.kill_strays()
    place.prepare()
    files = job.files(job.library())
    store = Store.create(place.store, [(path, job.partition_of(path)) for path in files])
    diary = Diary.create(place.diary)
    diary.pace_s = PACE_S
    crew = Crew(place, cluster)
    alone = proof.Alone(place)
    stage = phases.Stage(cluster, crew, store, diary, say)
    try:
        say(f"{len(files)} files of {job.library()} are to be indexed; three nodes start")
        cluster.start()
        return play(stage, place, alone)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second Ctrl-C must not leave half behind
        for thing in (crew, cluster, alone):
            thing.kill()


def play(stage: phases.Stage, place: Place, alone: proof.Alone) -> bool:
    """The job with all phases, then the proof, then the picture and the table."""
    say, cluster = stage.say, stage.cluster
    phases.begin(stage)
    for phase in phases.ALL:
        phase(stage)
    phases.finish(stage)
    ended = time.time()
    published = cluster.published()
    nodes = cluster.nodes
    cluster.stop()
    proof.check_index(stage, alone)
    say("the cluster has stopped; Spark replays the log of three nodes")
    left = proof.read_left(cluster.cluster_id, nodes)
    proof.check_log(stage, nodes, left, published)
    print(f"\n{proof.replay(stage, place, nodes, left)}\n")
    return conclude(stage, place, ended)


def conclude(stage: phases.Stage, place: Place, ended: float) -> bool:
    """Draw, print, judge."""
    claims = stage.store.claims()
    owned = intervals(claims, stage.diary.ends(), stage.freezes, ended)
    _check_moves(stage)
    errors = stage.diary.notes(Kind.ERROR)
    print(table.render(stage, owned, errors), end="\n\n")
    print(table.told(errors, stage.began), end="\n\n")
    for check in stage.checks:
        print(f"{'ok    ' if check.held else 'FAILED'}  {check.name}: {check.seen}")
    print(f"\npicture: {place.picture}\npage: {place.page}")
    return all(check.held for check in stage.checks)


def _check_moves(stage: phases.Stage) -> None:
    claims = stage.store.claims()
    for name, wanted in phases.MOVED.items():
        window = next(phase.window for phase in stage.phases if phase.name.startswith(name))
        moved = moves(claims, window)
        stage.check(f"{name} partitions moved", moved, held=moved == wanted)


def main() -> int:
    """Run it; 0: everything held, 1: something did not, 130: interrupted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("demo-out"), help="default: demo-out")
    parser.add_argument("--protocol", choices=PROTOCOLS, default=CLASSIC.name)
    asked = parser.parse_args()
    place = Place(asked.out.resolve())
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    say = Progress()
    try:
        held = run(place, PROTOCOLS[asked.protocol], say)
    except KeyboardInterrupt:
        say("interrupted; everything that was started has been ended")
        return 130
    except Exception as error:  # noqa: BLE001 - the last place that can tell a person
        say(f"FAILED: {type(error).__name__}: {error}; {place.folder} has every process's output")
        return 1
    say("everything held" if held else "NOT everything held")
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
