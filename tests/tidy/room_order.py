"""Which rooms of its package each room may know: a table that `test_rooms` holds the tree to."""

_OF_GUARD = ["rpc.errors", "rpc.callers", "rpc.grpc_options", "metrics.call_counts", "traces"]
_OF_RPC = ["process.open_files", "metrics.call_counts", "metrics.node_facts", "traces"]
_TRANSLATE = ["_session", "errors", "_text"]
_RPC = ["_translate", "_tracing", *_TRANSLATE]
ORDER = {
    "client": {
        **{room: [] for room in ("_text", "_tracing")},
        "errors": ["_text"],
        "_session": ["errors"],
        "_translate": _TRANSLATE,
        "_rpc": _RPC,
        "aio": ["_rpc", *_RPC],
        "sync": ["aio", "_rpc", *_RPC],
    },
    "coordinator": {
        "structures": [],
        "model": ["structures"],
        "assignors": [],
        "projections": ["structures", "model", "groups"],
        "groups": ["structures", "model"],
        "classic": ["structures", "model", "groups", "cluster.settings"],
        "consumer": ["structures", "model", "groups", "cluster.settings"],
        "offsets": ["structures", "model", "groups", "cluster.settings"],
        "cluster": ["structures", "model", "groups"],
        "kernel": [
            *("structures", "model", "groups", "classic", "consumer", "offsets", "cluster"),
        ],
    },
    "storage": {
        **{room: [] for room in ("errors", "durations", "codec")},
        "disk": ["errors", "journal.journal"],
        "journal": ["errors", "disk", "durations"],
        "state": ["errors", "disk"],
        "segments": ["errors", "disk", "codec", "state"],
        "directory": ["errors", "disk", "journal", "state"],
    },
    "raft": {
        **{room: [] for room in ("messages", "membership", "fingerprints")},
        "wire": ["api", "messages"],
        "api": ["messages", "membership"],
        "thread": ["api"],
        "transport": ["api", "messages", "membership", "fingerprints", "wire"],
        "core": ["api", "messages", "membership"],
        "pysyncobj": ["api", "messages", "membership", "core"],
        "open": ["api", "pysyncobj", "thread", "transport"],
    },
    "runtime": {
        "errors": [],
        "ports": ["event_log.history"],
        "time": ["ports"],
        "replica": ["ports", "event_log", "backup.source"],
        "backup": ["event_log", "replica.image", "replica.state_machine"],
        "event_log": ["replica.state_machine", "replica.snapshots"],
        "groups": ["errors", "ports", "time", "event_log.child"],
        "background": ["ports", "groups"],
    },
    "server": {
        **{room: [] for room in ("audit", "config")},
        "security": ["config"],
        "translate": ["guard", "rpc.errors", "rpc.slices"],
        "access": ["audit", "guard.answer_size", "rpc.errors", "rpc.callers", "translate"],
        "guard": ["access.admission", *_OF_GUARD],
        "rpc": ["access", "config", "security", "guard", "translate", *_OF_RPC],
        "http": ["config", "security", "metrics.metrics"],
        "metrics": ["config", "http.pages", "rpc.nodes", "rpc.slices"],
        "traces": ["config", "security", "metrics.call_counts"],
        "process": [
            *("access", "audit", "config", "security", "guard", "rpc", "http", "metrics", "traces"),
        ],
    },
}
"""A room or a module of a package, and what else of the package it may import."""
