"""The credentials of the peer port, and a check of the node's own certificate.

Peers would refuse a node whose certificate lacks its name, and only their logs would tell why. So
it is checked when the node starts, and when it takes new files. Opens no connections.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from holdfast.raft.transport.peer_names import missing_name, old_node_uri, uris_of
from holdfast.raft.transport.tls import PeerTls
from holdfast.server.config.node_config import ConfigError

if TYPE_CHECKING:
    from holdfast.server.config.node_config import NodeConfig, Tls
    from holdfast.server.security.credentials import Credentials

logger = logging.getLogger(__name__)


def peer_tls(config: NodeConfig, credentials: Credentials) -> PeerTls:
    """Return the credentials of the peer port.

    Raises ConfigError if peers would refuse this node's certificate.
    """
    tls = config.tls
    accepts_old = tls is not None and tls.accept_old_node_names
    if tls is not None and len(config.peers) > 1:
        _look_at_name(config, tls, credentials.certificate)
    return PeerTls(
        credentials.peer_ca,
        credentials.certificate,
        credentials.key,
        accept_old_names=accepts_old,
    )


def _look_at_name(config: NodeConfig, tls: Tls, certificate: bytes) -> None:
    missing = missing_name(certificate, config.cluster_id, config.name)
    old = old_node_uri(config.name) in uris_of(certificate)
    if missing and not (old and tls.accept_old_node_names):
        hint = " or set tls.accept_old_node_names = true on all nodes until then" if old else ""
        raise ConfigError(
            f"the certificate {tls.certificate} lacks {missing}, by which the other nodes know "
            f"{config.name}: have one signed that has it (deploy/README.md){hint}"
        )
    if missing:
        logger.warning(
            "the certificate %s has only the name of Holdfast 0.1. Have one signed that has also "
            "%s; when all nodes have theirs, set tls.accept_old_node_names = false",
            tls.certificate,
            missing,
        )
    elif tls.accept_old_node_names:
        logger.warning(
            "tls.accept_old_node_names is true: a node of that name of another cluster under the "
            "same authority can pass for that node. Set it to false when all nodes' certificates "
            "have the name of deploy/README.md"
        )
