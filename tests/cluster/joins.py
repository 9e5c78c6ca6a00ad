"""A static member's join, as tests of a real cluster send it over a channel of their own.

Its session is longer than any outage of a test: whoever is lost is lost by a defect, not by time.
"""

from __future__ import annotations

from typing import Final

from holdfast.v1 import group_pb2 as g
from holdfast.v1.extras_pb2 import RequestExtras

SESSION_MS: Final = 60_000


def static_join(
    instance_id: str, member_id: str = "", request_id: str = "", group_id: str = "g"
) -> g.JoinGroupRequest:
    """Make the request; with an empty member id the member takes the instance's place."""
    return g.JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=SESSION_MS,
        rebalance_timeout_ms=SESSION_MS,
        member_id=member_id,
        group_instance_id=instance_id,
        protocol_type="test",
        protocols=[g.JoinGroupRequestProtocol(name="p", metadata=b"m")],
        holdfast=RequestExtras(request_id=request_id) if request_id else None,
    )
