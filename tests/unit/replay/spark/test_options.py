"""Where Spark is to run is checked before anything starts, in one sentence (`WrongUse`)."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.replay.findings import WrongUse
from holdfast.replay.spark.options import SUBMITTED, SparkOptions

pytestmark = pytest.mark.slow  # it imports pyspark


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("spark:/x", None, (), None), "is no Spark master"),
        (("spark://host", None, (), None), "is no Spark master"),
        (("local[]", None, (), None), "is no Spark master"),
        (("local-cluster[2,1,449]", None, (), None), "need 450 MiB or more"),
        (("local[2]", "sc://h", (), None), "Give one of them"),
        (("sc://h", None, (), None), "say --remote"),
        ((None, "h:15002", (), None), "is no address"),
        ((None, "sc://", (), None), "is no address"),
        ((None, None, ("spark.ui.port",), None), "write KEY=VALUE"),
        ((None, None, ("=1",), None), "write KEY=VALUE"),
        ((None, None, ("ui.port=1",), None), "begin with spark."),
        ((None, None, ("spark.master=local",), None), "say --master"),
        ((None, None, ("spark.driver.memory=3g",), None), "say --memory"),
        ((None, None, ("spark.sql.session.timeZone=Asia/Tokyo",), None), "in UTC"),
        ((None, None, (), "2"), "is no amount"),
        ((None, None, (), "two"), "is no amount"),
        ((None, None, (), "511m"), "too little"),
        ((None, None, (), "999999t"), "more than this machine has"),
        ((None, "sc://h", (), "2g"), "a server has its own"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_one_sentence(
    given: tuple[str | None, str | None, tuple[str, ...], str | None], said: str
) -> None:
    with pytest.raises(WrongUse, match=said) as caught:
        SparkOptions.given(*given)

    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("master", "remote"),
    [
        ("sc://h/;token=SECRET", None),
        ("spark:/h/;token=SECRET", None),
        (None, "https://h:1/;token=SECRET"),
        (None, "sc://h:123456/;token=SECRET"),
        (None, "sc://h:1;token=SECRET"),
    ],
)
def test_an_address_that_is_refused_is_shown_without_its_token(
    master: str | None, remote: str | None
) -> None:
    """Messages get into logs of jobs."""
    with pytest.raises(WrongUse, match="/h") as caught:
        SparkOptions.given(master, remote, (), None)

    assert "SECRET" not in str(caught.value)


@pytest.mark.parametrize(
    ("master", "here"),
    [
        (None, True),
        ("local", True),
        ("local[4]", True),
        ("local[*, 3]", True),
        ("local-cluster[2,1,1024]", True),
        ("spark://a:7077,b:7077", False),
        ("spark://[::1]:7077", False),
        ("yarn", False),
        ("k8s://https://h:6443", False),
    ],
)
def test_workers_are_ours_only_with_a_local_master(master: str | None, *, here: bool) -> None:
    assert SparkOptions.given(master, None, (), None).is_here is here


@pytest.mark.parametrize(
    ("master", "alone"),
    [("", True), ("local[2]", True), ("local-cluster[2,1,1024]", False), ("spark://h:1", False)],
)
def test_only_one_jvm_alone_is_not_asked_for_workers(master: str, *, alone: bool) -> None:
    """A local cluster whose workers do not start would be waited for without end."""
    assert SparkOptions(master).is_one_jvm is alone


@pytest.mark.parametrize(
    ("master", "mib"),
    [("local-cluster[2, 1, 450]", 450), ("local[2]", None), ("", None), ("sc://h", None)],
)
def test_workers_of_a_local_cluster_have_the_memory_that_its_name_says(
    master: str, mib: int | None
) -> None:
    assert SparkOptions(master).worker_mib == mib


def test_packages_for_workers_are_whole_paths_if_they_are_of_this_machine() -> None:
    """A process that Spark starts begins in another folder; a URL is fetched by Spark alone."""
    given = "spark.submit.pyFiles=packed/a.zip,/b.zip,hdfs://h/c.zip"

    assert SparkOptions.given(None, None, (given,), None).py_paths == [
        str(Path.cwd() / "packed" / "a.zip"),
        "/b.zip",
    ]
    assert SparkOptions().py_paths == []


def test_of_a_setting_that_is_given_twice_the_last_counts_and_its_value_may_have_signs() -> None:
    options = SparkOptions.given(None, None, ("spark.x=1", "spark.x=a=b"), "512M")

    assert options.settings == {"spark.x": "a=b"}


@pytest.mark.parametrize(("master", "memory"), [("local[2]", None), (None, "1g")])
def test_what_spark_submit_has_chosen_is_not_chosen_again(
    master: str | None, memory: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SUBMITTED, "1")

    with pytest.raises(WrongUse, match="spark-submit"):
        SparkOptions.given(master, None, (), memory)
    assert not SparkOptions().is_here
