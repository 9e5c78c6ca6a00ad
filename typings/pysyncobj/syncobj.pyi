from collections.abc import Callable, Sequence

from pysyncobj.config import SyncObjConf
from pysyncobj.journal import Journal
from pysyncobj.node import Node
from pysyncobj.transport import Transport

createJournal: Callable[[object], Journal]
monotonicTime: Callable[[], float]

class SyncObj:
    """The engine's core; private names appear mangled, as a subclass in another module sees them."""

    _poller: object
    _SyncObj__raftState: int
    _SyncObj__raftCurrentTerm: int
    _SyncObj__raftLeader: Node | None
    _SyncObj__raftElectionDeadline: float
    _SyncObj__transferInProgress: bool
    _SyncObj__raftCommitIndex: int
    _SyncObj__raftLastApplied: int
    _SyncObj__raftMatchIndex: dict[Node, int]
    _SyncObj__lastResponseTime: dict[Node, float]
    _SyncObj__otherNodes: set[Node]
    _SyncObj__connectedNodes: set[Node]
    _SyncObj__noopIDx: int | None
    _SyncObj__commandsQueue: object
    _SyncObj__commandsWaitingCommit: dict[int, list[tuple[int, object]]]
    _SyncObj__newAppendEntriesTime: float

    def __init__(
        self,
        selfNode: Node,
        otherNodes: Sequence[Node],
        conf: SyncObjConf,
        nodeClass: type[Node],
        transport: Transport,
    ) -> None: ...
    def doTick(self, timeToWait: float = ...) -> None: ...
    def transferLeadership(self, node: Node) -> None: ...
    def _onTick(self, timeToWait: float = ...) -> None: ...
    def _checkCommandsToApply(self) -> None: ...
    def _SyncObj__onMessageReceived(self, node: Node, message: dict[str, object]) -> None: ...
    def _SyncObj__onBecomeLeader(self) -> None: ...
    def _SyncObj__setState(self, newState: int) -> None: ...
    def _SyncObj__setCurrentTerm(self, term: int, votedForNodeId: str | None) -> None: ...
