"""The client for asyncio. `holdfast.client.sync` has the same names and methods for threads.

Shells: they perform what a session decides (_session) by calls (_rpc), and decide nothing.
"""

from holdfast.client.aio.admin import Admin
from holdfast.client.aio.connection import Connection
from holdfast.client.aio.member import Member
from holdfast.client.aio.members import Members
from holdfast.client.aio.stop_signals import restart_on_signals

__all__ = ["Admin", "Connection", "Member", "Members", "restart_on_signals"]
