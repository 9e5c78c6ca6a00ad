"""Find the nodes of a local cluster that lack data, and refuse a start that would not succeed.

If a node lacks its data, a majority of all must have theirs (S19): else its rebuild never ends.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from holdfast.server.config.node_config import CannotStart
from holdfast.storage.directory.data_directory import is_empty
from holdfast.storage.directory.stage import lacks_data

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    from holdfast.cli.local_cluster.standing import Standing
    from holdfast.server.config.node_config import NodeConfig


class Disks:
    """The data directories of a local cluster's nodes. Changes nothing."""

    def __init__(
        self, directory: Path, configs: Sequence[NodeConfig], known: Standing | None = None
    ) -> None:
        """`configs`: the existing configurations; they name all nodes, also absent ones.

        `known`: which nodes there were when the cluster last served, if that was noted.
        """
        self._directory, self._configs = directory, configs
        names = frozenset(peer.name for config in configs for peer in config.peers)
        self.voters = frozenset(known.voters) if known else names
        """The nodes that count, whether or not they are here."""
        nodes = known.nodes if known else names
        self.absent = sorted(nodes - {config.name for config in configs})
        """The nodes whose configuration is not there."""

    @property
    def count(self) -> int:
        """How many nodes count."""
        return len(self.voters)

    @property
    def needed(self) -> int:
        """A majority of them."""
        return self.count // 2 + 1

    def forget(self, name: str) -> None:
        """Count a node no more: it says that it was removed, which nobody had noted."""
        self.voters -= {name}

    def lacking(self) -> dict[str, str]:
        """Find the nodes that lack data, and what each lacks. No node may run meanwhile."""
        found = {name: f"{self._directory / name}/node.toml is missing" for name in self.absent}
        lost = lacks_data([config.data_dir for config in self._configs])
        for config in self._configs:
            if config.data_dir in lost:
                found[config.name] = _lack(config.data_dir)
        return dict(sorted(found.items()))

    def refuse_rebuilds(self, rebuild: Collection[str], *, formed: bool) -> None:
        """Raise CannotStart if --rebuild names a node wrongly, or data would be lost."""
        most = (self.count - 1) // 2
        for name in sorted(rebuild):
            config = next((each for each in self._configs if each.name == name), None)
            if config is None:
                known = ", ".join(each.name for each in self._configs)
                raise CannotStart(f"--rebuild {name}: there is no such node; the nodes are {known}")
            if not is_empty(config.data_dir):
                raise CannotStart(_has_data(name, config.data_dir))
        if len(rebuild) > most:
            raise CannotStart(
                f"--rebuild may name {most} of {self.count} nodes at most: what they fetch must "
                "be with the others, and a majority has to have kept its data"
            )
        if rebuild and not formed:
            raise CannotStart(
                f"the cluster in {self._directory} has never served, so there is nothing to "
                "rebuild from. Leave --rebuild out"
            )

    def refuse_lost_majority(self) -> None:
        """Raise CannotStart if no majority would have the data that the others lack."""
        found = self.lacking() if self.count > 1 else {}
        lacking = {name: lack for name, lack in found.items() if name in self.voters}
        if self.count - len(lacking) < self.needed:
            raise CannotStart(
                f"the data of {_and(list(lacking))} is not there: {'; '.join(lacking.values())}. "
                f"{self.needed} of {self.count} nodes are needed, with their data, and fewer "
                "cannot rebuild the others. Check that the right disks are mounted, or put these "
                "back; a new, empty cluster begins in another --dir"
            )


def _and(names: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _lack(data: Path) -> str:
    if is_empty(data):
        return f"{data} is missing or empty"
    return f"{data} began to rebuild, and never got the data"


def _has_data(name: str, data: Path) -> str:
    """Write why --rebuild is refused for a directory with data: no option deletes data.

    A damaged directory needs no option: its node sets the damage aside and rebuilds (S21).
    """
    here = shlex.quote(str(data))
    return (
        f"--rebuild {name}: {data} is not empty, and --rebuild touches no data. If this node's "
        "data must not be used (an older copy was put back, or another's), move it away and repeat "
        f"the command: mv {here} {shlex.quote(f'{data}.old')}. Else leave --rebuild out"
    )
