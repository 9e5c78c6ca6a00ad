"""`holdfast topic`: named sets of partitions."""

from __future__ import annotations

import click

from holdfast.server.cli.connect import Cluster
from holdfast.server.cli.options import as_json, asks_cluster, refuse, refuse_any, show_json, table
from holdfast.v1 import admin_pb2 as a


@click.group()
def topic() -> None:
    """Create, grow, list and delete topics."""


@topic.command()
@click.argument("name")
@click.option("--partitions", type=int, required=True, help="How many partitions it gets.")
@asks_cluster
def create(cluster: Cluster, name: str, partitions: int) -> None:
    """Create a topic."""
    wanted = a.CreatableTopic(name=name, num_partitions=partitions)
    response = cluster.change("CreateTopics", a.CreateTopicsRequest(topics=[wanted]))
    refuse_any((t.name, t.error_code, t.error_message) for t in response.topics)
    click.echo(f"created {name} with {partitions} partitions")


@topic.command()
@click.argument("name")
@click.option("--partitions", type=int, required=True, help="How many it shall have then.")
@asks_cluster
def grow(cluster: Cluster, name: str, partitions: int) -> None:
    """Raise a topic's number of partitions; it can never fall."""
    wanted = a.CreatePartitionsTopic(name=name, count=partitions)
    response = cluster.change("CreatePartitions", a.CreatePartitionsRequest(topics=[wanted]))
    refuse_any((t.name, t.error_code, t.error_message) for t in response.results)
    click.echo(f"{name} has {partitions} partitions")


@topic.command()
@click.argument("names", nargs=-1, required=True)
@asks_cluster
def delete(cluster: Cluster, names: tuple[str, ...]) -> None:
    """Delete topics."""
    wanted = [a.DeleteTopicState(name=name) for name in names]
    response = cluster.change("DeleteTopics", a.DeleteTopicsRequest(topics=wanted))
    refuse_any((t.name, t.error_code, t.error_message) for t in response.responses)
    click.echo(f"deleted {', '.join(names)}")


@topic.command("list")
@as_json
@asks_cluster
def list_topics(cluster: Cluster, *, as_json: bool) -> None:
    """List topics."""
    response = cluster.call("ListTopics", a.ListTopicsRequest())
    refuse(response, "topics")
    if as_json:
        show_json(response)
        return
    table(("TOPIC", "PARTITIONS"), ((t.name, t.num_partitions) for t in response.topics))
