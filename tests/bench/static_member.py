"""One static member as a process of its own: `python static_member.py` with its orders on stdin.

It joins by `holdfast.client`, and writes for how many seconds it has existed when it owns as much
as it is told to wait for. Then it stays, until it is killed.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time

import grpc

from holdfast.client.aio import Member


async def main() -> None:
    """Join, own, tell, stay."""
    orders = json.loads(sys.stdin.readline())
    shown = [orders[each].encode() for each in ("ca", "key", "certificate")]
    began = time.perf_counter()
    member = Member(
        orders["endpoint"], group=orders["group"], topics=[orders["topic"]], protocol="consumer",
        instance_id=orders["instance_id"], credentials=grpc.ssl_channel_credentials(*shown),
    )  # fmt: skip
    async with member:
        for _ in range(orders["partitions"]):
            await member.next_owned()
        print(time.perf_counter() - began, flush=True)
        await member.wait_stopped()


if __name__ == "__main__":
    asyncio.run(main())
