"""A node's child process at the test's own priority: at the lowest it may take a minute."""

from __future__ import annotations

import asyncio
import sys

from holdfast.runtime.event_log.child import Ended


async def run_plain_child(module: str, *arguments: str) -> Ended:
    """What `run_child` does, but for the priority."""
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", module, *arguments),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        output, complaint = await child.communicate()
    except asyncio.CancelledError:
        child.kill()
        await child.wait()
        raise
    return Ended(child.returncode or 0, output.decode(), complaint.decode())
