"""The second port for clients, by which they come with a bearer token: bound, and kept up to date.

It serves what the first port serves. The issuer's keys are looked at every few seconds, in a thread
of the loop's pool, since a disk may hang. Needs PyJWT, which only a node with [tokens] loads.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from holdfast.server.config.node_config import ConfigError
from holdfast.server.process.ports import bind
from holdfast.server.process.token_door import TokenDoor
from holdfast.server.security.certificate_watch import LOOK_SECONDS
from holdfast.server.security.token_keys import KeyFile, KeysUnusable
from holdfast.server.security.tokens import Tokens

if TYPE_CHECKING:
    import grpc

    from holdfast.server.config.node_config import NodeConfig
    from holdfast.server.config.token_settings import TokenSettings

logger = logging.getLogger(__name__)


class TokenPort:
    """The port, and what judges the tokens that are shown there."""

    def __init__(
        self, config: NodeConfig, settings: TokenSettings, credentials: grpc.ServerCredentials
    ) -> None:
        """Read the keys and bind the port; raises ConfigError or CannotStart."""
        try:
            self._keys = KeyFile(settings.keys)
        except KeysUnusable as error:
            raise ConfigError(
                f"the issuer's keys {settings.keys}: {error}. Correct the file or tokens.keys"
            ) from error
        self._tokens = Tokens(settings, self._keys.in_force)
        others = {
            str(peer.client_address): str(peer.token_address)
            for peer in config.peers
            if peer.token_address
        }
        self._door = TokenDoor(self._tokens, others)
        self._address = settings.address
        self.server = bind(
            config,
            credentials,
            settings.address,
            "tokens.address or token_address",
            interceptors=(self._door,),
        )
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to look at the keys; the server is started by the node."""
        logger.info("serving clients with tokens on %s", self._address)
        self._task = asyncio.create_task(self._look_for_ever())

    def stop(self) -> None:
        """Look no more."""
        if self._task is not None:
            self._task.cancel()

    async def _look_for_ever(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                if await asyncio.to_thread(self._keys.look):
                    self._tokens.replace_keys(self._keys.in_force)
                    self._door.end_untrusted()
            except Exception:
                logger.exception("a defect: looking at the issuer's keys failed; it goes on")
