"""Run events of a verification in the form of OpenLineage, as lines of JSON in a file.

A catalogue that reads them shows which logs were proven, when, up to where, and with what outcome.
Plain JSON, in the fields of OpenLineage's RunEvent; nothing is sent. Knows results, no Spark.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from holdfast.coordinator.model.ids import Position
from holdfast.replay.findings import Report
from holdfast.replay.read.node_logs import NodeLog
from holdfast.replay.read.url_path import Folder

PRODUCER: Final = "https://pypi.org/project/holdfast"
SCHEMA: Final = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"
_ERROR_SCHEMA: Final = (
    "https://openlineage.io/spec/facets/1-0-1/ErrorMessageRunFacet.json#/$defs/ErrorMessageRunFacet"
)
_OWN_SCHEMA: Final = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/"
"""Of facets of ours, which have no schema of their own: the base that all facets have."""
JOB: Final = "replay.verify"

_Facet = dict[str, Any]


@contextmanager
def lineage(
    path: Path | None, logs: Sequence[NodeLog], folders: Sequence[Folder | str]
) -> Iterator[Callable[[Report], Report]]:
    """Note the beginning and the end of a verification; the body passes its report through.

    The end is COMPLETE if the log is verified, FAIL if it is wrong or could not be checked, and
    ABORT if it was interrupted. Without a path nothing is written. Raises OSError.
    """
    if path is None:
        yield lambda report: report
        return
    run = _Run(path, tuple(_dataset(*each) for each in zip(logs, folders, strict=True)), logs)
    run.add("START", {})
    try:
        yield run.done
    except KeyboardInterrupt:
        run.add("ABORT", {})
        raise
    except Exception as error:
        run.add("FAIL", {"errorMessage": _error(str(error))})
        raise
    run.add(*run.ended())


@dataclass(slots=True)
class _Run:
    """One verification."""

    path: Path
    inputs: tuple[dict[str, Any], ...]
    logs: Sequence[NodeLog]
    run_id: str = field(default_factory=lambda: str(uuid4()))
    report: Report | None = None

    def done(self, report: Report) -> Report:
        """Take in the outcome, and return it."""
        self.report = report
        return report

    def ended(self) -> tuple[str, dict[str, _Facet]]:
        """Return the kind of the last event, and what it tells of the run."""
        if self.report is None:
            return "FAIL", {"errorMessage": _error("there is no report")}
        told = {"holdfast_verification": _verdict(self.report)}
        if self.report.passed:
            return "COMPLETE", told
        found = [str(each) for each in self.report.findings[:1]]
        why = self.report.unfinished or "".join(found) or "no records were checked"
        return "FAIL", {**told, "errorMessage": _error(why)}

    def add(self, kind: str, facets: dict[str, _Facet]) -> None:
        """Append an event to the file."""
        clusters = {each.manifest.cluster_id for log in self.logs for each in log.segments}
        event = {
            "eventType": kind,
            "eventTime": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "run": {"runId": self.run_id, "facets": facets},
            "job": {"namespace": ":".join(["holdfast", *sorted(clusters)]), "name": JOB},
            "inputs": list(self.inputs),
            "outputs": [],
            "producer": PRODUCER,
            "schemaURL": SCHEMA,
        }
        with self.path.open("a") as file:
            file.write(json.dumps(event) + "\n")


def _dataset(log: NodeLog, folder: Folder | str) -> dict[str, Any]:
    """Return a node's log as a dataset, with the positions from which and up to which it goes."""
    sealed = [each.ends.first for each in log.segments]
    told = {
        "node": log.node,
        "segments": len(log.segments),
        "first": _place(min(sealed, default=None)),
        "last": _place(log.last if sealed else None),
        "checkpoint": _place(log.begins.last if log.begins.cut else None),
    }
    facets = {"holdfast_log": _facet(_OWN_SCHEMA + "DatasetFacet", told)}
    return {**_named(folder), "facets": facets}


def _named(folder: Folder | str) -> dict[str, str]:
    """Return a folder as OpenLineage names datasets: the store of a URL, and the path in it."""
    scheme, parted, rest = str(folder).partition("://")
    if not parted:
        return {"namespace": "file", "name": str(Path(str(folder)).resolve())}
    store, _, path = rest.partition("/")
    return {"namespace": f"{scheme}://{store}", "name": path}


def _verdict(report: Report) -> _Facet:
    told = {
        "passed": report.passed,
        "records": report.records,
        "last": _place(report.last),
        "digest": None if report.digest is None else f"{report.digest:016x}",
        "findings": len(report.findings),
        "checks": [{"name": each.name, "passed": each.passed} for each in report.checks],
    }
    return _facet(_OWN_SCHEMA + "RunFacet", told)


def _error(message: str) -> _Facet:
    return _facet(_ERROR_SCHEMA, {"message": message, "programmingLanguage": "python"})


def _facet(schema: str, told: dict[str, Any]) -> _Facet:
    return {"_producer": PRODUCER, "_schemaURL": schema, **told}


def _place(position: Position | None) -> dict[str, int] | None:
    return None if position is None else position._asdict()
