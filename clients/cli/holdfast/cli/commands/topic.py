"""`holdfast topic`: named sets of partitions."""

from __future__ import annotations

import click

from holdfast.cli.connect import Cluster
from holdfast.cli.ending import fail
from holdfast.cli.names import topic_name
from holdfast.cli.options import (
    as_json,
    asks_cluster,
    refuse,
    refuse_any,
    show_json,
    table,
)
from holdfast.cli.render.speaking import say
from holdfast.coordinator.cluster.settings_catalogue import REGISTRY
from holdfast.v1 import admin_pb2 as a
from holdfast.v1 import errors_pb2 as e
from holdfast.v1.extras_pb2 import RequestExtras

_count = click.IntRange(1, REGISTRY["topic.partitions_max"].most)
"""The largest value allowed; the cluster checks the setting in force."""


@click.group()
def topic() -> None:
    """Create, grow, list and delete topics."""


@topic.command()
@click.argument("name", callback=topic_name)
@click.option("--partitions", type=_count, required=True, help="How many partitions it gets.")
@click.option(
    "--if-not-exists",
    is_flag=True,
    help="Let a topic that exists with so many partitions be; with another number, fail.",
)
@as_json
@asks_cluster
def create(
    cluster: Cluster, name: str, partitions: int, *, if_not_exists: bool, as_json: bool
) -> None:
    """Create a topic."""
    wanted = a.CreatableTopic(name=name, num_partitions=partitions)
    response = cluster.change(a.CreateTopicsRequest(topics=[wanted]), a.CreateTopicsResponse)
    if as_json:
        show_json(response)
    if if_not_exists and _is_there(response):
        _check_size(cluster, name, partitions)
        if not as_json:
            say(f"{name} is there already, with {partitions} partitions")
        return
    refuse_any((t.name, t.error_code, t.error_message) for t in response.topics)
    if not as_json:
        say(f"created {name} with {partitions} partitions")


def _is_there(response: a.CreateTopicsResponse) -> bool:
    return [t.error_code for t in response.topics] == [e.ERROR_CODE_TOPIC_ALREADY_EXISTS]


def _check_size(cluster: Cluster, name: str, partitions: int) -> None:
    """End the command if the topic is not the one that was asked for."""
    response = cluster.call(a.ListTopicsRequest(names=[name]), a.ListTopicsResponse)
    refuse(response, "topics")
    for found in response.topics:
        if found.num_partitions != partitions:
            fail(
                f"a topic {name!r} is there already, with {found.num_partitions} partitions and "
                f"not {partitions}. Raise it with `holdfast topic grow`, or ask for as many as it "
                "has"
            )


@topic.command()
@click.argument("name", callback=topic_name)
@click.option("--partitions", type=_count, required=True, help="How many it shall have then.")
@as_json
@asks_cluster
def grow(cluster: Cluster, name: str, partitions: int, *, as_json: bool) -> None:
    """Raise a topic's number of partitions; it can never fall."""
    wanted = a.CreatePartitionsTopic(name=name, count=partitions)
    response = cluster.change(
        a.CreatePartitionsRequest(topics=[wanted]), a.CreatePartitionsResponse
    )
    if as_json:
        show_json(response)
    refuse_any((t.name, t.error_code, t.error_message) for t in response.results)
    if not as_json:
        say(f"{name} has {partitions} partitions")


@topic.command()
@click.argument("names", nargs=-1, required=True, callback=topic_name)
@click.option(
    "--force", is_flag=True, help="Delete also a topic that groups with members subscribe to."
)
@as_json
@asks_cluster
def delete(cluster: Cluster, names: tuple[str, ...], *, force: bool, as_json: bool) -> None:
    """Delete topics, each for itself, with the offsets that groups have of them.

    A topic that members of a group subscribe to is kept: stop them first. With --force they lose
    its partitions a few seconds later, when their group leader sees it.
    """
    wanted = [a.DeleteTopicState(name=name) for name in names]
    request = a.DeleteTopicsRequest(topics=wanted, holdfast=RequestExtras(force=force))
    response = cluster.change(request, a.DeleteTopicsResponse)
    if as_json:
        show_json(response)
    else:
        done = [t.name for t in response.responses if t.error_code == e.ERROR_CODE_NONE]
        say(f"deleted {', '.join(done) or 'nothing'}")
    refuse_any((t.name, t.error_code, t.error_message) for t in response.responses)


@topic.command("list")
@as_json
@asks_cluster
def list_topics(cluster: Cluster, *, as_json: bool) -> None:
    """List topics."""
    response = cluster.pages(a.ListTopicsRequest(), a.ListTopicsResponse)
    refuse(response, "topics")
    if as_json:
        show_json(response)
        return
    table(("TOPIC", "PARTITIONS"), ((t.name, t.num_partitions) for t in response.topics))
