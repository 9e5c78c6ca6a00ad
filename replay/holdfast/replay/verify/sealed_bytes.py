"""Compare files with what their manifests say of their bytes and rows (format 2, docs/adr/0059).

A file whose bytes are others is named also if every record in it is right: it is not the file that
the node sealed. Where more is known of a file, as that it cannot be read, that is said alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.replay.findings import Finding
from holdfast.replay.read.archive import PEER
from holdfast.storage.segments.file_contents import other_bytes
from holdfast.storage.segments.segments import MANIFEST

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from holdfast.replay.read.node_logs import NodeLog


def other_files(
    logs: Sequence[NodeLog], held: Mapping[str, tuple[str, int, int]], named: Collection[str]
) -> Iterator[Finding]:
    """Yield a finding for each file that is not as its manifest says.

    `held`: SHA-256, size and number of rows of each file that could be read. `named`: the files of
    which something is said already.
    """
    for log in logs:
        for segment in log.segments:
            for sealed in segment.manifest.contents:
                path = str(segment.folder / sealed.file)
                if path in named or path not in held:
                    continue
                sha256, size, rows = held[path]
                if (size, sha256) != (sealed.size, sealed.sha256):
                    text = f"{other_bytes(sealed, size, sha256)}; {PEER}"
                    yield Finding("bytes", log.node, "", None, text, path)
                elif rows != sealed.rows:
                    text = f"the manifest tells {sealed.rows} records of {sealed.file}, and {rows}"
                    manifest = str(segment.folder / MANIFEST)
                    yield Finding("manifest", log.node, "", None, f"{text} are there", manifest)
