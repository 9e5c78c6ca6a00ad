"""The time that is written into a request id (UUIDv7, S15). Pure; decides nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from holdfast.coordinator.model.ids import RequestId

_UUID_LENGTH: Final = 36
_UUID_DASHES: Final = (8, 13, 18, 23)


def made_at_ms(request_id: RequestId) -> int | None:
    """Return a UUIDv7's time, in milliseconds of log time; None if the id is no UUIDv7."""
    dashes = tuple(at for at, sign in enumerate(request_id) if sign == "-")
    if len(request_id) != _UUID_LENGTH or dashes != _UUID_DASHES:
        return None
    digits = request_id.replace("-", "")
    if not set(digits) <= set("0123456789abcdefABCDEF"):
        return None
    is_version_7, is_variant_2 = digits[12] == "7", digits[16] in "89abAB"
    return int(digits[:12], 16) if is_version_7 and is_variant_2 else None
