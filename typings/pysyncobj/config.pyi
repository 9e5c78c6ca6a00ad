class SyncObjConf:
    def __init__(
        self,
        *,
        autoTick: bool,
        appendEntriesUseBatch: bool,
        appendEntriesPeriod: float,
        raftMinTimeout: float,
        raftMaxTimeout: float,
        connectionTimeout: float,
        leaderFallbackTimeout: float,
        commandsWaitLeader: bool,
        dynamicMembershipChange: bool,
        fullDumpFile: None,
        journalFile: object,
    ) -> None: ...
