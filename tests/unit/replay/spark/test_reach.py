"""A master or a server that is not there is told at once, before a JVM starts."""

from __future__ import annotations

import socket

import pytest

from holdfast.replay.findings import CannotCheck
from holdfast.replay.spark.reach import check_answers

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


def test_one_of_two_masters_is_enough() -> None:
    """With a standby, the other one may be down."""
    with socket.create_server(("127.0.0.1", 0)) as one:
        check_answers(f"spark://127.0.0.1:{closed_port()},127.0.0.1:{one.getsockname()[1]}")


@pytest.mark.parametrize("master", ["", "local[2]", "local-cluster[2,1,1024]", "yarn"])
def test_what_has_no_address_is_not_asked(master: str) -> None:
    check_answers(master)
