"""The files of a backup: what `holdfast backup create`, `inspect` and `verify` do.

Loaded when one of them is run: it needs the [server] extra.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, Final

from holdfast.cli.connect import Cluster
from holdfast.cli.ending import UNREACHED, fail, print_json
from holdfast.cli.options import refuse
from holdfast.cli.render.speaking import say, say_lines
from holdfast.cli.render.times import instant
from holdfast.cli.target import NotRunning
from holdfast.runtime.backup.folder import BackupFolder, Pending
from holdfast.runtime.backup.manifest import (
    CHECKPOINT_PREFIX,
    FORMAT_VERSION,
    BackupFlawed,
    BackupManifest,
    StoredFile,
    load_manifest,
)
from holdfast.runtime.backup.verify import Verified, verify_backup
from holdfast.v1 import admin_pb2 as a
from holdfast.v1.backup_pb2 import ReadBackupRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from holdfast.cli.target import Target
    from holdfast.v1.backup_pb2 import BackupSegment, BeginBackupResponse

FLAWS_MAX: Final = 50
"""Flaws that are shown; one damaged place can have many consequences."""

Seen = "Sequence[tuple[str, a.DescribeClusterResponse]]"


def create(cluster: Cluster, directory: Path, wanted: str, *, as_json: bool) -> None:
    """Back the cluster up to a directory, and verify what arrived."""
    try:
        with BackupFolder(directory) as folder:
            manifest, behind = _create(cluster, folder, wanted)
            found = verify_backup(directory, manifest)
            _refuse_flaws(directory, found)
            folder.publish(manifest)
    except BackupFlawed as error:
        fail(str(error))
    except OSError as error:
        fail(f"cannot write to {error.filename or directory}: {error.strerror or error}")
    if as_json:
        print_json({**_plain(directory, manifest), "records": found.records})
        return
    lag = f", {behind} entries behind the leader when it began" if behind else ""
    say(f"backed up from {manifest.node}{lag}")
    say_lines(_told(directory, manifest))


def _create(cluster: Cluster, folder: BackupFolder, wanted: str) -> tuple[BackupManifest, int]:
    seen = _seen(cluster)
    pending = folder.pending()
    address, one = _chosen(seen, wanted or (pending.node if pending else ""), asked=bool(wanted))
    behind = max(0, max(each.applied_index for _, each in seen) - one.applied_index)
    with cluster.only(address) as node:
        begun = node.begin_backup(pending.copy_id if pending else "")
        refuse(begun, "node", one.node)
        folder.check_cluster(begun.cluster_id)
        folder.check_newer(begun.recovery_number, begun.index)
        folder.begin(Pending(begun.node, begun.copy_id))
        segments = [_segment(node, folder, begun, each) for each in begun.segments]
        checkpoint = _checkpoint(node, folder, begun)
        state = _state(node, folder, begun)
        node.end_backup(begun.copy_id)
    manifest = _manifest(folder, begun, state, segments)
    return replace(manifest, checkpoint=checkpoint), behind


def _seen(cluster: Cluster) -> list[tuple[str, a.DescribeClusterResponse]]:
    asked = cluster.on_every_node(a.DescribeClusterRequest(), a.DescribeClusterResponse)
    seen = [(address, one) for address, one in asked if one is not None]
    if not seen:
        fail(f"no node answered; last: {cluster.last_failure}", UNREACHED)
    return seen


def _chosen(
    seen: Sequence[tuple[str, a.DescribeClusterResponse]], name: str, *, asked: bool
) -> tuple[str, a.DescribeClusterResponse]:
    """Choose the named node, else the follower that is furthest, else the leader."""
    named = [each for each in seen if each[1].node == name]
    if named:
        return named[0]
    if asked:
        names = ", ".join(sorted(one.node for _, one in seen))
        fail(f"there is no node {name!r} that answers; these do: {names}", UNREACHED)
    return max(seen, key=lambda each: (each[1].node != each[1].leader, each[1].applied_index))


def _state(node: Cluster, folder: BackupFolder, begun: BeginBackupResponse) -> StoredFile:
    path = folder.partial()
    _fetch(node, path, ReadBackupRequest(copy_id=begun.copy_id), begun.state.size)
    state = folder.finish_state(f"state-{begun.index}-{begun.copy_id}")
    if bytes.fromhex(state.sha256) != begun.state.sha256:
        (folder.path / state.name).unlink()
        fail(f"the state did not arrive as {begun.node} has it. Run the same command again")
    return state


def _checkpoint(
    node: Cluster, folder: BackupFolder, begun: BeginBackupResponse
) -> StoredFile | None:
    """Fetch what stands for the history before the segments, if some was cut off."""
    if not begun.HasField("checkpoint"):
        return None
    name = begun.checkpoint.name
    path = folder.partial(name)
    request = ReadBackupRequest(copy_id=begun.copy_id, file=name)
    _fetch(node, path, request, begun.checkpoint.size)
    return folder.finish_file(path, f"{CHECKPOINT_PREFIX}{name}")


def _segment(
    node: Cluster, folder: BackupFolder, begun: BeginBackupResponse, segment: BackupSegment
) -> str:
    """Fetch a segment unless it is here; return its folder."""
    name = folder.segment_folder(begun.recovery_number, segment.name)
    if folder.has_segment(name):
        return name
    for file in segment.files:
        request = ReadBackupRequest(copy_id=begun.copy_id, segment=segment.name, file=file.name)
        _fetch(node, folder.partial(segment.name, file.name), request, file.size)
    folder.finish_segment(name)
    return name


def _fetch(node: Cluster, path: Path, request: ReadBackupRequest, size: int) -> None:
    """Fetch what a file lacks at its end."""
    have = path.stat().st_size if path.exists() else 0
    if have > size:
        path.unlink()
        have = 0
    request.offset = have
    with path.open("ab") as file:
        if have < size:
            for chunk in node.read_backup(request):
                file.write(chunk)
        arrived = file.tell()
    if arrived != size:
        fail(f"{path.name} has {arrived} bytes instead of {size}. Run the same command again")


def _manifest(
    folder: BackupFolder, begun: BeginBackupResponse, state: StoredFile, segments: list[str]
) -> BackupManifest:
    return BackupManifest(
        format_version=FORMAT_VERSION,
        cluster_id=begun.cluster_id,
        node=begun.node,
        version=begun.version,
        index=begun.index,
        term=begun.term,
        digest=begun.digest.hex(),
        chain=begun.chain.hex(),
        log_time_ms=begun.log_time_ms,
        wall_time_ms=begun.wall_time_ms,
        recovery_number=begun.recovery_number,
        first=(begun.first.index, begun.first.ordinal) if begun.HasField("first") else None,
        state=state,
        segments=tuple(segments),
        files=tuple(file for each in segments for file in folder.files_of(each)),
    )


def inspect(directory: Path, *, as_json: bool) -> None:
    """Show what the manifest says."""
    manifest = _loaded(directory)
    if as_json:
        print_json(_plain(directory, manifest))
    else:
        say_lines(_told(directory, manifest))


def verify(directory: Path, *, as_json: bool) -> Verified:
    """Verify the backup; ends the command if there is a flaw."""
    manifest = _loaded(directory)
    found = verify_backup(directory, manifest)
    if as_json:
        print_json(
            {
                **_plain(directory, manifest),
                "records": found.records,
                "whole": found.whole and found.cut is None,
                "flaws": list(found.flaws),
            }
        )
    else:
        say_lines(f"  - {flaw}" for flaw in found.flaws[:FLAWS_MAX])
    _refuse_flaws(directory, found)
    if not as_json:
        kind = "the whole history" if found.whole else "not from the first record on"
        if found.whole and found.cut is not None:
            kind = f"all behind the checkpoint at {found.cut.index}.{found.cut.ordinal}"
        say(
            f"{directory} is as it was written: {found.records} records ({kind}), and the state "
            f"at index {manifest.index} has the digest {manifest.digest[:16]}"
        )
    return found


def report(find: Callable[[], Target], directory: Path, found: Verified, *, as_json: bool) -> None:
    """Tell the cluster that a backup was verified which holds all of its history so far."""
    if not found.whole:
        fail(
            f"the backup in {directory} lacks the beginning of the history, so it is not reported: "
            "retention could delete what nothing else holds. Take one from a node that has it all"
        )
    manifest = _loaded(directory)
    request = a.ReportBackupRequest(
        cluster_id=manifest.cluster_id,
        index=manifest.index,
        recovery_number=manifest.recovery_number,
    )
    try:
        target = find()
    except NotRunning as error:
        fail(str(error))
    with Cluster(target) as cluster:
        response = cluster.change(request, a.ReportBackupResponse)
    refuse(response, "the report")
    if not as_json:
        say(f"reported: what lies before index {response.index} may be deleted by retention")


def _loaded(directory: Path) -> BackupManifest:
    try:
        return load_manifest(directory)
    except BackupFlawed as error:
        fail(str(error))


def _refuse_flaws(directory: Path, found: Verified) -> None:
    if found.flaws:
        fail(
            f"the backup in {directory} is NOT as it was written, {len(found.flaws)} flaws, the "
            f"first: {found.flaws[0]}. Use another backup, or a copy of this one; a damaged "
            "segment is fetched again by `holdfast backup create` once its folder is removed"
        )


def _plain(directory: Path, manifest: BackupManifest) -> dict[str, Any]:
    return {"directory": str(directory), "bytes": _size(manifest), **asdict(manifest)}


def _size(manifest: BackupManifest) -> int:
    return sum(file.size for file in manifest.all_files())


def _told(directory: Path, manifest: BackupManifest) -> list[str]:
    first = (
        "no record" if manifest.first is None else f"record {manifest.first[0]}.{manifest.first[1]}"
    )
    taken = f"{instant(manifest.wall_time_ms)} from {manifest.node}, version {manifest.version}"
    return [
        f"backup:           {directory}",
        f"cluster:          {manifest.cluster_id}",
        f"position:         index {manifest.index} of term {manifest.term}",
        f"digest of state:  {manifest.digest}",
        f"head of chain:    {manifest.chain}",
        f"log time:         {manifest.log_time_ms} ms",
        f"taken:            {taken}",
        f"recovery number:  {manifest.recovery_number}",
        f"history:          from {first} on, in {len(manifest.segments)} segments and the state",
        f"size:             {_size(manifest)} bytes in {len(manifest.all_files())} files",
    ]
