"""The client for threads: the same names and methods as `aio`, without asyncio for the user.

One thread (threads.py) runs an event loop for all members and admins of the process, so heartbeats
go on while the user's threads block. A shell over the aio shell: no rules and no calls of its own.
"""

from holdfast.client.sync.admin import Admin
from holdfast.client.sync.connection import Connection
from holdfast.client.sync.member import Member
from holdfast.client.sync.members import Members
from holdfast.client.sync.partition import ThreadPartition as Partition
from holdfast.client.sync.stop_signals import restart_on_signals

__all__ = ["Admin", "Connection", "Member", "Members", "Partition", "restart_on_signals"]
