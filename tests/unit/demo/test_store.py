"""The demo's store keeps S13: the highest token of each partition decides, in one transaction."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from demo.job import Row
from demo.store import Holder, Refusal, Store

FILES = [("a.py", 0), ("b.py", 0), ("c.py", 1)]


def row(path: str) -> Row:
    return Row(path, 10, 1, 0, 0, "00")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store.create(tmp_path / "store.sqlite", FILES)
    yield made
    made.close()


def test_a_claim_tells_what_is_left_of_its_partition_only(store: Store) -> None:
    assert store.claim(Holder("one", 0, 5)) == ["b.py", "a.py"]
    assert store.write(Holder("one", 0, 5), row("b.py")) is None
    assert store.claim(Holder("two", 0, 6)) == ["a.py"]


@pytest.mark.parametrize("token", [1, 6])
def test_a_write_under_a_lower_token_is_refused_and_recorded(store: Store, token: int) -> None:
    store.claim(Holder("old", 0, token))
    store.claim(Holder("new", 0, 7))
    refusal = store.write(Holder("old", 0, token), row("a.py"))
    assert isinstance(refusal, Refusal)
    assert (refusal.action, refusal.partition, refusal.token, refusal.highest, refusal.worker) == (
        "write", 0, token, 7, "old",
    )  # fmt: skip
    assert store.refusals() == [refusal]
    assert store.results() == []


def test_a_claim_under_a_lower_token_is_refused_and_claims_nothing(store: Store) -> None:
    store.claim(Holder("new", 0, 7))
    refusal = store.claim(Holder("old", 0, 6))
    assert isinstance(refusal, Refusal)
    assert refusal.action == "claim"
    assert [claim.worker for claim in store.claims()] == ["new"]
    assert store.tokens() == {0: 7}


def test_the_same_token_may_claim_and_write_again(store: Store) -> None:
    """S11: ownership that a heartbeat confirmed again comes back under the same grant."""
    store.claim(Holder("one", 0, 7))
    assert store.claim(Holder("one", 0, 7)) == ["b.py", "a.py"]
    assert store.write(Holder("one", 0, 7), row("a.py")) is None


def test_s13_tokens_of_other_partitions_refuse_nothing(store: Store) -> None:
    """S13: one maximum for the whole store would refuse the rightful owners of other partitions."""
    store.claim(Holder("new", 0, 900))
    assert store.claim(Holder("other", 1, 3)) == ["c.py"]
    assert store.write(Holder("other", 1, 3), row("c.py")) is None
    assert store.refusals() == []


def test_a_write_raises_the_token_as_a_claim_does(store: Store) -> None:
    store.write(Holder("new", 0, 9), row("a.py"))
    assert isinstance(store.write(Holder("old", 0, 8), row("b.py")), Refusal)


def test_a_file_that_is_done_twice_is_an_error_and_changes_nothing(store: Store) -> None:
    store.write(Holder("one", 0, 5), row("a.py"))
    with pytest.raises(sqlite3.IntegrityError):
        store.write(Holder("two", 0, 6), row("a.py"))
    assert store.tokens() == {0: 5}


def test_rows_are_counted_without_the_victims(store: Store) -> None:
    store.write(Holder("one", 0, 5), row("a.py"))
    store.write(Holder("two", 1, 6), row("c.py"))
    assert store.count() == 2
    assert store.count(other_than=["one"]) == 1
    assert store.count(other_than=["one", "two"]) == 0
    assert store.count(since=1e12) == 0
    assert store.size() == 3
