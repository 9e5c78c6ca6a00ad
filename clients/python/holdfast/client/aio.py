"""The client for asyncio. `holdfast.client.sync` has the same names and methods for threads."""

from holdfast.client.admin import Admin
from holdfast.client.member import Member

__all__ = ["Admin", "Member"]
