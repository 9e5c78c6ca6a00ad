"""S24: the checkpoint is there, whole and durable, before the first segment goes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from shutil import copytree

import pytest

from holdfast.coordinator.model.ids import Position
from holdfast.storage.disk import files
from holdfast.storage.segments import checkpoint as checkpoint_file
from holdfast.storage.segments import cut
from holdfast.storage.segments.checkpoint import (
    checkpoint_name,
    checkpoints_in,
    newest_sound,
    read_checkpoint,
)
from holdfast.storage.segments.cut import (
    EXIT_FLAWED,
    EXIT_MISSING,
    make_checkpoint,
    remove_cut,
    rows_behind,
)
from holdfast.storage.segments.fold import CannotFold, RecordsMissing
from holdfast.storage.segments.log_check import FROM_THE_FIRST, NodeLog, check_node
from holdfast.storage.segments.segments import segments_in
from unit.storage.segments.sealed_history import History, history


@pytest.fixture
def node(tmp_path: Path) -> History:
    return history(tmp_path)


def made(node: History, last: Position, digest: bytes | None = None) -> bytes:
    behind = rows_behind(node.segments, node.state, last)
    return make_checkpoint(node.segments, last, digest, behind).digest


def verified(node: History) -> NodeLog:
    """What is left of the log, checked from its newest sound checkpoint on, if it has one."""
    base, _ = newest_sound(checkpoints_in(node.segments), Position(1 << 60, 0))
    start = base.begin() if base.heads else FROM_THE_FIRST
    rest = [row for row in node.log.rows if row.position > node.boundaries[-1]]
    return check_node("n1", segments_in(node.segments), rest, start)


def test_s24_a_cut_leaves_the_checkpoint_and_what_lies_behind_it(node: History) -> None:
    last = node.boundaries[1]

    assert made(node, last) == node.digest_at(last)
    assert remove_cut(node.segments, last) == 2

    assert [path for _, path in checkpoints_in(node.segments)] == [
        node.segments / checkpoint_name(last)
    ]
    log = verified(node)
    assert (log.flaws, log.whole, log.cut) == ([], True, last)
    assert list(log.hashes) == [row.position for row in node.rows_behind(last)]
    assert sorted(each.name for each in node.segments.iterdir()) == sorted(
        [checkpoint_name(last), segments_in(node.segments)[0].name]
    ), "nothing is left over"


def test_s24_the_next_cut_begins_at_the_checkpoint_of_the_last(node: History) -> None:
    for last in node.boundaries:
        made(node, last)
        remove_cut(node.segments, last)
        assert read_checkpoint(node.segments / checkpoint_name(last)).digest == node.digest_at(last)
    assert segments_in(node.segments) == []
    assert len(checkpoints_in(node.segments)) == 1


def test_s24_a_node_whose_records_lead_elsewhere_deletes_nothing(node: History) -> None:
    """The digest on the log is what the leader's own records led to."""
    last, before = node.boundaries[0], sorted(node.segments.rglob("*"))

    with pytest.raises(CannotFold, match="and the log says"):
        made(node, last, digest=bytes(40))
    with pytest.raises(FileNotFoundError, match="nothing is deleted"):
        remove_cut(node.segments, last)

    assert sorted(node.segments.rglob("*")) == before


def test_s24_a_leader_proposes_no_checkpoint_whose_chain_does_not_go_on(node: History) -> None:
    last = node.boundaries[0]
    behind = iter(node.rows_behind(last)[1:])

    with pytest.raises(CannotFold, match="does not go on"):
        make_checkpoint(node.segments, last, None, behind)
    assert checkpoints_in(node.segments) == []


def test_s24_a_damaged_checkpoint_is_made_again_while_its_records_are_there(node: History) -> None:
    last = node.boundaries[0]
    digest = made(node, last)
    path = node.segments / checkpoint_name(last)
    path.write_bytes(path.read_bytes()[:-1])

    assert made(node, last, digest) == digest
    assert read_checkpoint(path).digest == digest


def test_s24_a_damaged_checkpoint_whose_records_are_gone_has_to_come_from_a_peer(
    node: History, tmp_path: Path
) -> None:
    last = node.boundaries[1]
    digest = made(node, last)
    remove_cut(node.segments, last)
    path = node.segments / checkpoint_name(last)
    sound = path.read_bytes()
    path.write_bytes(sound[:-1])

    with pytest.raises(RecordsMissing):
        made(node, last, digest)
    assert program(node, last, digest.hex()) == EXIT_MISSING
    arrived = tmp_path / "arrived"
    arrived.write_bytes(sound[:-1])
    assert program(node, last, digest.hex(), arrived) == EXIT_FLAWED
    arrived.write_bytes(sound)
    assert program(node, last, digest.hex(), arrived) == 0
    assert read_checkpoint(path).digest == digest


def program(node: History, last: Position, digest: str, arrived: Path | None = None) -> int:
    place = f"{last.index}.{last.ordinal}"
    return cut.main([str(node.state), str(node.segments), place, digest, str(arrived or "-")])


def test_the_program_tells_the_digest_and_the_log_time(
    node: History, capsys: pytest.CaptureFixture[str]
) -> None:
    last = node.boundaries[0]

    assert program(node, last, "-") == 0

    told = json.loads(capsys.readouterr().out)
    newest = [record for record in node.log.records if record.position <= last][-1]
    assert told == {"digest": node.digest_at(last).hex(), "log_time_ms": newest.log_time_ms}


def test_a_segment_that_ends_behind_the_cut_stays(node: History) -> None:
    inside = node.log.records[3].position
    (node.segments / checkpoint_name(inside)).touch()

    assert remove_cut(node.segments, inside) == 0
    assert len(segments_in(node.segments)) == len(node.boundaries)


def test_s24_what_a_crash_has_left_of_other_checkpoints_goes_with_the_next_cut(
    node: History,
) -> None:
    """Each is as large as the state. One that lies further on may be written just now."""
    early, last, late = node.boundaries
    for place in (early, late):
        (node.segments / f".{checkpoint_name(place)}.new").touch()
        (node.segments / f".{checkpoint_name(place)}.arrived").touch()

    cut_of(node, last)

    left = {path.name for path in node.segments.glob(".*")}
    assert left == {f".{checkpoint_name(late)}.new", f".{checkpoint_name(late)}.arrived"}


class PowerCutError(Exception):
    """The machine stands still at this step."""


STEPS: tuple[tuple[object, str], ...] = (
    (checkpoint_file, "sync_path"),
    (checkpoint_file, "rename_durably"),
    (cut, "rename_durably"),
    (cut, "remove_tree"),
    (cut, "sync_path"),
    (files, "sync_path"),
)
"""What a cut does to the disk, one call after another."""


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Let the power fail at the n-th step, before or after it is done."""
    number, limit = count(), [1 << 30]

    def failing(step: Callable[..., None]) -> Callable[..., None]:
        def run(*arguments: object) -> None:
            before, after = next(number), next(number)
            if before >= limit[0]:
                raise PowerCutError
            step(*arguments)
            if after >= limit[0]:
                raise PowerCutError

        return run

    for module, name in STEPS:
        monkeypatch.setattr(module, name, failing(getattr(module, name)))

    def fail_after(done: int) -> None:
        nonlocal number
        number, limit[0] = count(), done

    return fail_after


def cut_of(node: History, last: Position) -> None:
    made(node, last)
    remove_cut(node.segments, last)


def test_s24_a_crash_at_any_step_leaves_a_log_that_can_be_verified(
    tmp_path: Path, steps: Callable[[int], None]
) -> None:
    """After each crash: the old or the new is whole, and the same cut can be carried out again."""
    first = history(tmp_path / "n1")
    last = first.boundaries[1]
    tried = 0
    for done in _until_none(first, steps, tmp_path):
        tried += 1
        log = verified(done)
        assert log.flaws == []
        assert log.whole
        assert log.cut in {None, last}
        cut_of(done, last)
        again = verified(done)
        assert (again.flaws, again.cut) == ([], last)
        assert not list(done.segments.glob(".*")), "leftovers of the crash are removed"
    assert tried > 10, "it crashed at every step"


def _until_none(first: History, steps: Callable[[int], None], parent: Path) -> Iterator[History]:
    """Copies of a node on which the cut broke off one step later each time."""
    for number in count():
        copy = parent / f"crash-{number}"
        copytree(first.segments.parent, copy)
        node = first._replace(segments=copy / "segments", state=copy / "state")
        steps(number)
        try:
            cut_of(node, first.boundaries[1])
        except PowerCutError:
            steps(1 << 30)
            yield node
        else:
            return


def test_s24_a_checkpoint_is_synced_before_it_is_renamed(
    node: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was renamed and not synced may be an empty file after a power cut."""
    seen: list[str] = []

    def sync(path: Path) -> None:
        seen.append(f"sync {path.suffix}")
        files.sync_path(path)

    def rename(source: Path, target: Path) -> None:
        seen.append(f"rename {source.suffix}")
        files.rename_durably(source, target)

    monkeypatch.setattr(checkpoint_file, "sync_path", sync)
    monkeypatch.setattr(checkpoint_file, "rename_durably", rename)

    made(node, node.boundaries[0])

    assert seen == ["sync .new", "rename .new"]
