"""Who needs little loads little: a start of Spark is long enough for whoever waits for it."""

from __future__ import annotations

import json
import subprocess
import sys

DRAWS = {"matplotlib", "holdfast.replay.report.picture"}
ASKS = {"grpc", "lmdb", "pandas", "holdfast.client", "holdfast.storage"}
"""What only a process that asks nodes, or makes rows of what they tell, needs."""


def loaded(program: str) -> set[str]:
    """What a process has loaded at the end of a program."""
    told = f"import json, sys\n{program}\nprint(json.dumps([*sys.modules]))"
    run = subprocess.run(
        [sys.executable, "-P", "-c", told], capture_output=True, text=True, check=True
    )
    return set(json.loads(run.stdout))


def test_only_a_report_loads_what_draws() -> None:
    assert loaded("import holdfast.replay.app") & DRAWS == set()


def test_a_process_that_makes_a_source_or_plans_with_it_loads_no_client() -> None:
    """Spark starts one for each as a tail starts, and another two that do ask nodes."""
    planned = """
import pickle
from holdfast.replay.stream.log_source import LogSource
given = {"nodes": '{"addresses": ["h:1"], "tls": null}', "rowsMax": "10"}
made = pickle.loads(pickle.dumps(LogSource(given)))
pickle.loads(pickle.dumps(made.streamReader(None).read))
"""
    assert loaded(planned) & ASKS == set()
