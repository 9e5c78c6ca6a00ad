"""Every key of a node's file that is local to the node: meaning, unit, default, Kafka's name.

`docs/operations/config.md` is generated from this table (a test compares). Settings that shape
answers (`[group]`, `[offset]`, ...) are not here: they live in the log (S23), and
`holdfast.coordinator.cluster.settings` is their table.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from holdfast.coordinator.model.access import DENY, MODES

Kind = Literal["text", "texts", "path", "address", "integer", "fraction", "boolean", "choice"]
Value = str | int | float | bool | tuple[str, ...]


class Key(NamedTuple):
    """One key of a node's file."""

    table: str
    name: str
    kind: Kind
    default: Value | None  # None: it must be given or, with `optional`, may be left out
    text: str  # its meaning, for config.md and for messages
    unit: str = ""
    kafka: str = ""  # Kafka's name for it; empty if Kafka has none
    optional: bool = False
    least: int = 0  # bounds of an integer, both included
    most: int = (1 << 63) - 1
    choices: tuple[str, ...] = ()  # the values that a choice may have

    @property
    def dotted(self) -> str:
        """The name that `--set` and messages use: `table.name`."""
        return f"{self.table}.{self.name}"

    @property
    def variable(self) -> str:
        """The environment variable that overrides it."""
        return f"HOLDFAST_{self.table}_{self.name}".upper()


_MINUTE: Final = 60_000
CONNECTION_AGE_MS: Final = 60 * _MINUTE
"""In the last 15 % of it no call begins any more on a client's connection (`grpc_options`). That is
longer than Kafka's default of max.poll.interval.ms, so a join that waits for others is answered."""

KEYS: Final = (
    Key("node", "name", "text", None, "The node's name, unique in the cluster.", kafka="node.id"),
    Key("node", "data_dir", "path", None,
        "Where the node keeps its log and its state. Relative to the file.", kafka="log.dirs"),
    Key("node", "client_address", "address", None,
        "host:port on which it listens for clients. They are told the one in [cluster.peers].",
        kafka="listeners"),
    Key("node", "peer_address", "address", None,
        "host:port on which it listens for the other nodes.", kafka="controller.listener.names"),
    Key("node", "shutdown_ms", "integer", 10_000,
        "How long a graceful stop may take before what is left is cut off.",
        "ms", least=100, most=10 * _MINUTE),
    Key("node", "disk_reserve_bytes", "integer", None,
        "Free space below which changes are refused, while what was accepted is still kept (S20). "
        "To begin a data directory, 16 MiB more must be free: the files of the journal's tail take "
        "them at once, and so they do when a directory of 0.1.0 is started for the first time. "
        "Unset: the larger of 256 MiB and 5 % of the file system.", "bytes", optional=True),
    Key("cluster", "id", "text", None,
        "The cluster's id, the same on all nodes. A directory of another cluster is refused.",
        kafka="cluster.id"),
    Key("tls", "ca", "path", None,
        "Certificate authority (PEM) that signs clients, and nodes unless tls.peer_ca is given.",
        optional=True, kafka="ssl.truststore.location"),
    Key("tls", "peer_ca", "path", None,
        "Certificate authority (PEM) that signs nodes, this one included, where it is not the one "
        "that signs clients. Then a client's certificate opens no connection to the peer port, and "
        "clients are given this authority to know the nodes by.", optional=True),
    Key("tls", "certificate", "path", None, "This node's certificate (PEM).", optional=True,
        kafka="ssl.keystore.location"),
    Key("tls", "key", "path", None, "This node's private key (PEM).", optional=True,
        kafka="ssl.key.location"),
    Key("tls", "accept_old_node_names", "boolean", default=True,
        text="Whether nodes are known by the name that Holdfast 0.1 asked for as well, which a "
        "node of another cluster under the same authority may have, too. Set it to false as soon "
        "as all nodes have certificates with today's name (deploy/README.md)."),
    Key("tls", "connection_age_ms", "integer", CONNECTION_AGE_MS,
        "How old a connection with TLS may become, of a client or of a node; before that it is "
        "replaced by another, without a pause. So who shows a certificate that has expired, or "
        "whose authority is trusted no more, is out after this time.",
        "ms", "connections.max.reauth.ms", least=1_000, most=7 * 24 * 60 * _MINUTE),
    Key("tls", "insecure_loopback", "boolean", default=False,
        text="No TLS at all; only allowed if every address is on the loopback interface."),
    Key("http", "address", "address", None,
        "host:port on which it answers HTTP: `/livez`, `/readyz` and `/metrics`. Unset: it answers "
        "none. With certificates it is HTTPS, and all but the first two ask for a client's.",
        optional=True),
    Key("tokens", "issuer", "text", None,
        "The issuer that a token must name (`iss`). If it is given, the node has a second port for "
        "clients, which show a bearer token (JWT) there and no certificate.", optional=True,
        kafka="sasl.oauthbearer.expected.issuer"),
    Key("tokens", "address", "address", None,
        "host:port on which it listens for clients with tokens. Unset: this node's token_address "
        "in [cluster.peers].", optional=True),
    Key("tokens", "audience", "text", None,
        "The audience that a token must name (`aud`): this cluster, as the issuer calls it.",
        optional=True, kafka="sasl.oauthbearer.expected.audience"),
    Key("tokens", "keys", "path", None,
        "The issuer's public keys: a JSON Web Key Set. It is read again when it changes.",
        optional=True, kafka="sasl.oauthbearer.jwks.endpoint.url"),
    Key("tokens", "algorithms", "texts", None,
        "Signatures that are accepted. Unset: all that are checked with a public key (RS, PS and "
        "ES with 256, 384 and 512; EdDSA). In a variable or with --set: separated by commas.",
        optional=True),
    Key("tokens", "claim", "text", "sub",
        "The claim that names the principal, which is this name after `jwt:`.",
        kafka="sasl.oauthbearer.sub.claim.name"),
    Key("tokens", "leeway_ms", "integer", 30_000,
        "By how much the issuer's clock may differ from this node's: a token counts so much "
        "sooner and longer than it says.",
        "ms", "sasl.oauthbearer.clock.skew.seconds", most=5 * _MINUTE),
    Key("access", "administrators", "texts", None,
        "Principals that administrate a new cluster: the first URI in a client's certificate, else "
        "its first DNS name, else its common name. Counts at the bootstrap only; `holdfast acl` "
        "changes it later. In a variable or with --set: separated by commas. Unset: nobody, but "
        "`anonymous` with tls.insecure_loopback.", optional=True, kafka="super.users"),
    Key("access", "mode", "choice", DENY,
        "What becomes of calls in a new cluster that no grant allows: refused (`deny`), logged "
        "(`dry-run`), or neither (`open`). Counts at the bootstrap only; `holdfast acl mode` "
        "changes it later.", choices=MODES),
    Key("audit", "bytes_max", "integer", 64 << 20,
        "How many bytes all files of the audit may have together (`holdfast audit`): who was "
        "refused, and what administrators read. At least 65536, or 0: none is kept.", "bytes",
        most=1 << 40),
    Key("traces", "endpoint", "text", None,
        "URL of a collector that takes traces by OTLP over gRPC: https://host:port, or "
        "http://host:port on the loopback interface. Unset: none are exported. Needs "
        "`pip install 'holdfast[traces]'`.", optional=True),
    Key("traces", "sample_ratio", "fraction", 0.01,
        "The part of calls that is traced, 0 to 1, of those whose caller does not say. A caller "
        "says by `traceparent`, and that counts."),
    Key("traces", "ca", "path", None,
        "Certificate authority (PEM) of the collector's certificate. Unset: the well-known ones. "
        "The files of [traces] are read again when they change.", optional=True),
    Key("traces", "certificate", "path", None,
        "This node's certificate (PEM), for a collector that asks for one.", optional=True),
    Key("traces", "key", "path", None, "Its private key (PEM).", optional=True),
    Key("raft", "election_min_ms", "integer", 350,
        "Shortest time without a leader after which a node stands for election.",
        "ms", "controller.quorum.election.timeout.ms", least=50, most=_MINUTE),
    Key("raft", "election_max_ms", "integer", 700,
        "Longest such time; each node draws one between the two. If the leader's connection has "
        "ended, as with a killed process, it stands right after the shortest.",
        "ms", "controller.quorum.election.backoff.max.ms", least=60, most=2 * _MINUTE),
    Key("raft", "heartbeat_ms", "integer", 50,
        "How often the leader calls its followers; less than a third of election_min_ms.",
        "ms", least=10, most=20_000),
    Key("logger", "level", "choice", "info", "Least severe messages that are written.",
        choices=("debug", "info", "warning", "error")),
    Key("logger", "format", "choice", "text", "`text`: key=value for people; `json`: for programs.",
        choices=("text", "json")),
)  # fmt: skip

BY_NAME: Final = {key.dotted: key for key in KEYS}
PEER_KEYS: Final = (
    Key("cluster.peers.NAME", "client_address", "address", None,
        "host:port at which clients reach the node NAME.", kafka="advertised.listeners"),
    Key("cluster.peers.NAME", "peer_address", "address", None,
        "host:port at which the other nodes reach the node NAME.",
        kafka="controller.quorum.bootstrap.servers"),
    Key("cluster.peers.NAME", "token_address", "address", None,
        "host:port at which clients with tokens reach the node NAME. Every node has one, or none. "
        "The log does not tell it: that of a node that is added later is given in the files of all "
        "nodes, each of which is started again.",
        optional=True),
)  # fmt: skip
"""One table for each node of the cluster, this one included; all nodes have the same ones."""
