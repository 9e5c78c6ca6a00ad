"""Writes docs/operations/config.md from the tables of keys.

`python -m holdfast.server.config.text` prints it. So no key can be undocumented, and no page can be
wrong about a default.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from holdfast.coordinator.cluster.settings_catalogue import REGISTRY
from holdfast.server.config.keys import KEYS, PEER_KEYS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from holdfast.server.config.keys import Key

_HEAD: Final = """\
# A node's configuration

One TOML file a node, given with `holdfast node --config FILE`. An environment variable overrides
the file, and `--set table.key=value` overrides both. A key that nobody knows is an error that
suggests the near one. Relative paths start at the file's directory. Times are milliseconds.

This page is generated: `python -m holdfast.server.config.text > docs/operations/config.md`.

```toml
[node]
name = "node-1"
data_dir = "data"
client_address = "10.0.0.1:7400"
peer_address = "10.0.0.1:7500"

[cluster]
id = "search"

[cluster.peers.node-1]   # one table for each node that the cluster begins with
client_address = "10.0.0.1:7400"
peer_address = "10.0.0.1:7500"

[tls]
ca = "ca.pem"
certificate = "certificate.pem"
key = "key.pem"
accept_old_node_names = false

[access]
administrators = ["holdfast://client/ops"]   # who may do everything in a new cluster
```

Nodes know each other by names in their certificates: [deploy/README.md](../../deploy/README.md)
says which, how to make them, and how to move a cluster over whose certificates were made for 0.1.
It starts as it is, since `tls.accept_old_node_names` is true unless a file says otherwise.

A new cluster is begun with `holdfast node --config FILE --bootstrap` on every node; without that
flag an empty directory is refused. A node whose disk was lost comes back with `--rebuild`: it
fetches everything from its peers and does not vote until it has. With both, an empty directory
is refused; neither touches data that is there.

`[cluster.peers]` says where a cluster begins, the same on all its nodes. From the first change of
nodes on the log says which there are, and a file that differs gets a warning. The file of a node
that is added later names itself and some that are there, and its first start has `--rebuild`.
"""

_SETTINGS: Final = """
## Settings that live in the log

These tables count at the bootstrap only, as the first values of a new cluster. From then on they
are the same on all nodes, whatever the files say, and are changed with `holdfast settings set
NAME=VALUE` (`--group` for one group, where the scope allows it). A file that differs gets a
warning.
"""

_EXITS: Final = """
## Exit codes of the command

| code | meaning |
| --- | --- |
| 0 | done, or a graceful stop |
| 1 | refused or failed; one sentence on standard error says what, why, and what to do |
| 2 | wrong usage, or a missing extra |
| 3 | no node answered, or none served the call: they are starting or stopping, or have no leader |
| 4 | the outcome is unknown: look, then repeat |
| 5 | `holdfast replay` alone: Spark, a store, or a check could not do its work; nothing is proven |
| 6 | `holdfast node` alone: going on could lose or fork data; look before it starts again |
| 7 | `holdfast node` alone: the node was removed from the cluster; it is never to start again |
| 130 | interrupted before anything began, or before a local cluster served |

A command over several names, members or partitions does what can be done, and ends with 1 if any
was refused. `holdfast cluster start` ends with 0 when it was asked to stop (SIGINT, SIGTERM), also
if a node died meanwhile: it said so when it happened. It ends with 1 if it could not start.
"""


def page() -> str:
    """Build the whole page."""
    return "\n".join([_HEAD, *_local(), _SETTINGS, *_settings()]) + "\n" + _EXITS


def _local() -> Iterator[str]:
    yield "## Local to the node\n"
    yield "| key | meaning | default | unit | variable | Kafka's name |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for key in KEYS:
        yield _row(
            f"`{key.dotted}`", key.text, _default(key), key.unit, f"`{key.variable}`", key.kafka
        )
    for key in PEER_KEYS:
        yield _row(f"`{key.dotted}`", key.text, _default(key), key.unit, "", key.kafka)


def _default(key: Key) -> str:
    if key.default is None:
        return "unset" if key.optional else "required"
    shown = str(key.default).lower() if isinstance(key.default, bool) else str(key.default)
    return f"`{shown}`"


def _settings() -> Iterable[str]:
    yield "| setting | meaning | default | bounds | unit | scope | Kafka's name |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for name, s in sorted(REGISTRY.items()):
        yield _row(
            f"`{name}`", s.documentation, f"`{s.default}`", s.bounds, s.unit, s.scope, s.kafka_name
        )


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell or "–" for cell in cells) + " |"


if __name__ == "__main__":
    sys.stdout.write(page())
