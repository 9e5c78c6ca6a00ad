#!/opt/holdfast/bin/python -P
"""Ends with 0 if the node of this container lives, else with 1 and a sentence.

    holdfast-livez [--held-lives] [CONFIG]

Asks `/livez` at the address that the node's configuration names, on this machine. With
`--held-lives` a node that is held (see `entrypoint`) counts as alive: for a supervisor that would
restart it otherwise. Shows nothing and believes nothing but a yes, so no certificate is compared.
"""

from __future__ import annotations

import http.client
import os
import ssl
import sys
from pathlib import Path

from holdfast.server.config.node_config import ConfigError, NodeConfig, load

CONFIG = "/etc/holdfast/node.toml"
HELD = Path("/tmp/holdfast-held")  # noqa: S108 - the container's own, which `entrypoint` writes
SECONDS_MAX = 4.0
WILDCARDS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - it listens there, we ask here


def problem(config: NodeConfig) -> str:
    """Say why the node does not live; empty if it does."""
    if config.http_address is None:
        return "the configuration has no http.address, so nobody can ask. Give it one"
    host, port = config.http_address
    try:
        connection = connect(WILDCARDS.get(host, host), port, tls=config.tls is not None)
        connection.request("GET", "/livez")
        answer = connection.getresponse()
        body = answer.read().decode(errors="replace").strip()
    except (OSError, http.client.HTTPException) as error:
        return f"{config.http_address} does not answer: {error}"
    return "" if answer.status == http.client.OK else f"/livez answers {answer.status}: {body}"


def connect(host: str, port: int, *, tls: bool) -> http.client.HTTPConnection:
    """Make a connection to this machine's own port."""
    if not tls:
        return http.client.HTTPConnection(host, port, timeout=SECONDS_MAX)
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return http.client.HTTPSConnection(host, port, timeout=SECONDS_MAX, context=context)


def main(arguments: list[str]) -> int:
    """Ask once."""
    files = [each for each in arguments if each != "--held-lives"]
    if HELD.exists() and len(files) < len(arguments):
        return 0
    try:
        told = problem(load(Path((files or [CONFIG])[0]), os.environ, ()))
    except ConfigError as error:
        told = str(error)
    if told:
        print(f"holdfast-livez: {told}", file=sys.stderr)
    return 1 if told else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
