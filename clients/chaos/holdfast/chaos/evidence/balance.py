"""Who owns what, how much of it another share moves, and how much balance needs to move.

Knows no group, no protocol and no invariant.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple, TypeAlias

from holdfast.chaos.evidence.owned_partitions import COOPERATIVE, Partition

Owners: TypeAlias = dict[Partition, str]
"""Each partition's owner, by instance id or else member id."""


class Share(NamedTuple):
    """An assignment."""

    owners: Owners
    identities: frozenset[str]
    """The members that could own."""


def moved(held: Owners, share: Share, protocol: str) -> int:
    """Count the partitions that leave their owners.

    A cooperative assignor takes them in a first rebalance, in which they have no owner, and gives
    them to others in the second (KIP-429): so they are counted in the first.
    """
    taken = None if COOPERATIVE in protocol else ""
    new = {each: share.owners.get(each, taken) for each in held}
    return sum(1 for each, owner in held.items() if new[each] not in {owner, ""})


def needed(held: Owners, share: Share) -> int:
    """Return how many partitions must leave their owners at least, for balance within one.

    As many members as there are partitions left over may have one more than the rest; that costs
    least when it is those who have most.
    """
    if not share.identities:
        return 0
    total = len(share.owners.keys() | held.keys())  # what is held back now is shared out later
    floor, over = divmod(total, len(share.identities))
    loads = sorted(Counter(held.values()).values(), reverse=True)
    caps = [floor + 1] * over + [floor] * max(0, len(loads) - over)
    return sum(max(0, load - cap) for load, cap in zip(loads, caps, strict=False))
