"""What a reader of the log is told: nothing that names what it may not read."""

import pytest

from holdfast.coordinator.model.access import (
    ADMIN,
    CLUSTER,
    DENY,
    GROUP,
    READER,
    TOPIC,
    Acl,
)
from holdfast.coordinator.model.state import State
from holdfast.coordinator.structures.pmap import PMap
from holdfast.server.access.gate import Gate
from holdfast.server.access.sight import Sight
from holdfast.v1 import events_pb2 as ev

READS_CLUSTER = Acl("a", READER, CLUSTER, "")
READS_G, READS_T = Acl("a", READER, GROUP, "g"), Acl("a", READER, TOPIC, "t")
RULES = Acl("a", ADMIN, CLUSTER, "")


def sight(*acls: Acl, mode: str = DENY) -> Sight:
    state = State(acls=PMap((acl, acl) for acl in acls), access_mode=mode)
    return Sight(Gate(lambda: state), "a", "Watch")


def of_group(name: str) -> ev.EventRecord:
    return ev.EventRecord(group_id=name, event=ev.Event(group_created=ev.GroupCreated()))


def of_cluster(**body: object) -> ev.EventRecord:
    return ev.EventRecord(event=ev.Event(**body))  # type: ignore[arg-type]  # one of its bodies


TOPICS = of_cluster(
    topics_created=ev.TopicsCreated(topics=[ev.TopicSize(name="t"), ev.TopicSize(name="secret")])
)
ONE_TOPIC = of_cluster(topics_deleted=ev.TopicsDeleted(names=["t"]))
OF_GROUPS = of_cluster(settings_changed=ev.SettingsChanged(group_id="g"))
SETTINGS = of_cluster(settings_changed=ev.SettingsChanged())
GRANTS = of_cluster(acls_changed=ev.AclsChanged())
ANSWER = of_cluster(request_recorded=ev.RequestRecorded(answer=b'["secret"]'))


@pytest.mark.parametrize(
    ("acls", "seen", "unseen"),
    [
        ([], [], [of_group("g"), SETTINGS, GRANTS, ANSWER, TOPICS]),
        ([READS_G], [of_group("g")], [of_group("g2"), SETTINGS, OF_GROUPS]),
        (
            [READS_CLUSTER],
            [SETTINGS],
            [of_group("g"), OF_GROUPS, TOPICS, ONE_TOPIC, GRANTS, ANSWER],
        ),
        ([READS_CLUSTER, READS_G], [OF_GROUPS], [TOPICS]),
        ([READS_CLUSTER, READS_T], [ONE_TOPIC], [TOPICS]),
        ([READS_T], [], [ONE_TOPIC]),
        ([RULES], [of_group("g"), SETTINGS, GRANTS, ANSWER, TOPICS, OF_GROUPS], []),
    ],
)
def test_an_event_is_told_only_if_all_that_it_names_may_be_read(
    acls: list[Acl], seen: list[ev.EventRecord], unseen: list[ev.EventRecord]
) -> None:
    reader = sight(*acls)

    assert all(reader.sees(record) for record in seen)
    assert not any(reader.sees(record) for record in unseen)


def test_an_open_cluster_tells_everything() -> None:
    reader = sight(mode="")

    assert all(reader.sees(record) for record in (of_group("g"), TOPICS, GRANTS, ANSWER))
