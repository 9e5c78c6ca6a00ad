"""Check that a cluster may be broken, before anything of a run is made.

A refused run has judged nothing, so its caller must be able to distinguish it from one that found a
violation. Changes nothing and records nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from holdfast.chaos.cluster.target import NotHealed, Target
from holdfast.chaos.runner.plan import Plan, Refused
from holdfast.chaos.workload.tasks import PREFIX
from holdfast.client import Admin, HoldfastError

NODES_LEAST: Final = 3


async def admit(plan: Plan) -> None:
    """Refuse a cluster that cannot be broken, or must not be. Raises Refused."""
    if plan.cluster is None:
        _refuse_too_few(plan.nodes)
        return
    target = running(plan.cluster)
    try:
        _refuse_too_few(len(target.names))
        await _refuse_unhealthy(target)
        if not plan.other_groups:
            await _refuse_foreign(target)
    finally:
        await target.close()


def running(directory: Path) -> Target:
    """Return the cluster that runs in a directory. Raises Refused."""
    try:
        return Target(directory)
    except (OSError, ValueError, KeyError) as error:
        raise Refused(
            f"no running cluster at {directory} ({error}): start one with `holdfast cluster start "
            f"--dir {directory}`, or leave --cluster out for one that is made for the run"
        ) from error


def _refuse_too_few(nodes: int) -> None:
    if nodes < NODES_LEAST:
        raise Refused(
            f"the cluster has {nodes} node{'s' * (nodes != 1)}: a fault of one is the end of it. "
            "Chaos needs a cluster of three or five"
        )


async def _refuse_unhealthy(target: Target) -> None:
    """Refuse a cluster that is broken already: the run would report that as its own violation."""
    dead = [name for name in target.names if not target.alive(name)]
    if dead:
        raise Refused(
            f"of the cluster at {target.directory}, {', '.join(dead)} does not run: start it "
            f"(`holdfast cluster start --dir {target.directory}` starts all) before it is broken"
        )
    try:
        await target.whole()
    except NotHealed as error:
        raise Refused(
            f"the cluster at {target.directory} is not healthy, and nothing has been broken yet "
            f"({error}): `holdfast cluster status --cluster {target.directory}` shows its nodes"
        ) from error


async def _refuse_foreign(target: Target) -> None:
    """Refuse a cluster with members of others: the faults would affect them."""
    endpoints = tuple(node.client_address for node in target.nodes())
    try:
        async with Admin(endpoints, credentials=target.tls) as admin:
            found = [group.group_id for group in await admin.list_groups()]
    except HoldfastError as error:
        raise Refused(f"the groups of {target.directory} cannot be listed: {error}") from error
    strange = [name for name in found if not name.startswith(PREFIX)]
    if strange:
        raise Refused(
            f"the cluster has groups that no chaos run made ({', '.join(strange[:3])}): this "
            "breaks nodes on purpose. Use a staging cluster, or --other-groups if they may suffer"
        )
