"""The client for asyncio. `holdfast.client.sync` has the same names and methods for threads."""

from holdfast.client.admin import Admin
from holdfast.client.connection import Connection
from holdfast.client.member import Member
from holdfast.client.members import Members
from holdfast.client.stop_signals import restart_on_signals

__all__ = ["Admin", "Connection", "Member", "Members", "restart_on_signals"]
