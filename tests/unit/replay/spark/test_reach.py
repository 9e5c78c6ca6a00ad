"""A master, a server or workers that are not there are told, and not waited for without end."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.replay.findings import CannotCheck
from holdfast.replay.spark.reach import check_answers, watch, workers_watched

pytestmark = pytest.mark.slow  # it imports pyspark


def closed_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@pytest.mark.parametrize("form", ["spark://127.0.0.1:{}", "sc://127.0.0.1:{}/;user_id=x"])
def test_nobody_listens_which_is_told_with_the_address(form: str) -> None:
    port = closed_port()

    with pytest.raises(CannotCheck, match=f"127.0.0.1:{port}: Connection refused"):
        check_answers(form.format(port))


def test_an_address_of_spark_connect_is_shown_without_its_token() -> None:
    """Messages get into logs of jobs."""
    with pytest.raises(CannotCheck, match="reached at sc:") as caught:
        check_answers(f"sc://127.0.0.1:{closed_port()}/;token=SECRET")

    assert "SECRET" not in str(caught.value)


def test_one_of_two_masters_is_enough() -> None:
    """With a standby, the other one may be down."""
    with socket.create_server(("127.0.0.1", 0)) as one:
        check_answers(f"spark://127.0.0.1:{closed_port()},127.0.0.1:{one.getsockname()[1]}")


@pytest.mark.parametrize("master", ["", "local[2]", "local-cluster[2,1,1024]", "yarn"])
def test_what_has_no_address_is_not_asked(master: str) -> None:
    check_answers(master)


def cancelled_at(is_stuck: Callable[[float], bool], until_s: float) -> list[float]:
    """Watch for so many seconds, by a clock of its own; return when jobs were cancelled."""
    now, found = [0.0], list[float]()

    def wait(seconds: float) -> bool:
        now[0] += seconds
        return now[0] > until_s

    watch(lambda: is_stuck(now[0]), lambda: found.append(now[0]), wait)
    return found


def test_a_job_without_a_worker_for_a_minute_is_cancelled_and_so_is_one_after_it() -> None:
    """Spark itself would wait for ever; the next job has a minute of its own."""
    assert cancelled_at(lambda _: True, 120.0) == [60.0, 120.0]


def test_where_workers_come_and_go_with_the_work_nobody_watches_them() -> None:
    """A sound cluster may give a job its first one later than in a minute."""
    conf = {"spark.dynamicAllocation.enabled": "true"}
    spark: Any = SimpleNamespace(sparkContext=SimpleNamespace(getConf=lambda: conf))
    before = threading.active_count()

    with workers_watched(spark, "spark://h:7077"):
        assert threading.active_count() == before


def test_a_worker_that_comes_back_within_the_minute_is_no_reason_to_cancel() -> None:
    assert not cancelled_at(lambda now: now != 58.0, 116.0)
