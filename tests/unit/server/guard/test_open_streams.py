"""Which certificates the callers of open streams have shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from holdfast.server.guard.open_streams import OpenStreams

if TYPE_CHECKING:
    from holdfast.server.rpc.callers import Context


class Call:
    """A call's context, as far as it is asked here."""

    def __init__(self, *pems: bytes) -> None:
        self._pems = pems

    def auth_context(self) -> dict[str, tuple[bytes, ...]]:
        """What gRPC tells of the caller."""
        return {"x509_pem_cert": self._pems} if self._pems else {}


def test_only_streams_that_are_open_count() -> None:
    streams = OpenStreams()
    first, second, other, plain = (
        cast("Context", call) for call in (Call(b"a"), Call(b"a"), Call(b"b"), Call())
    )
    with streams.held(first), streams.held(plain):
        with streams.held(second), streams.held(other):
            assert streams.certificates() == {b"a", b"b"}
        assert streams.certificates() == {b"a"}

    assert streams.certificates() == set()
