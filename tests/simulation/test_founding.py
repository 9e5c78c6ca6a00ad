"""A disk that has founded a cluster of one is what S25 f is about, before the simulator adds it."""

from __future__ import annotations

from random import Random

import pytest

from simulation.disk import Disk, SyncedJournal
from simulation.founding import found_alone
from simulation.nodes import CLUSTER_ID, RAFT
from simulation.schedule import Schedule


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_disk_is_a_founders_with_a_log_of_its_own(seed: int) -> None:
    """It begins with term 1, as every cluster does, and may have a higher one by now."""
    disk = Disk(SyncedJournal(Schedule(), Random(seed)))

    found_alone("node-9", CLUSTER_ID, RAFT, disk, Random(seed))

    image = disk.journal.load()
    assert image.identity is not None
    assert (image.identity.stage, image.identity.cluster_id) == ("member", CLUSTER_ID)
    assert dict(image.identity.formed) == {"node-9": image.identity.incarnation}
    assert [(entry.index, entry.term) for entry in image.entries[:2]] == [(1, 1), (2, 1)]
    assert image.commit_index >= 1
    assert disk.founded_alone
