"""`holdfast backup create`: what it says when a node does not let it begin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self, cast

import pytest

from holdfast.cli.commands import backup_files
from holdfast.v1 import errors_pb2 as e
from holdfast.v1.admin_pb2 import DescribeClusterResponse
from holdfast.v1.backup_pb2 import BeginBackupResponse
from holdfast.v1.extras_pb2 import ResponseExtras

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.cli.connect import Cluster

WHY = "BeginBackup needs the role admin on cluster, and no grant gives it to the principal 'svc'"


class Node:
    """One node that refuses the backup; as `Cluster`, and as the cluster of this node alone."""

    def on_every_node(self, *_asked: object) -> list[tuple[str, DescribeClusterResponse]]:
        return [("a:7400", DescribeClusterResponse(node="a", leader="a"))]

    def only(self, _address: str) -> Self:
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_ended: object) -> None:
        pass

    def begin_backup(self, _copy_id: str) -> BeginBackupResponse:
        return BeginBackupResponse(
            error_code=e.ERROR_CODE_CLUSTER_AUTHORIZATION_FAILED,
            holdfast=ResponseExtras(message=WHY),
        )


def test_a_refusal_is_told_and_leaves_nothing_of_a_backup(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    node: Any = Node()
    with pytest.raises(SystemExit) as ended:
        backup_files.create(cast("Cluster", node), tmp_path / "to", "", as_json=False)

    assert ended.value.code == 1
    assert WHY in capsys.readouterr().err
    assert not list(tmp_path.rglob("copy.json")), "nothing is to be continued"
