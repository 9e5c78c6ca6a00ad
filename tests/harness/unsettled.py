"""S5: what becomes of proposals whose outcome was unknown, told by the items of the FIFO itself.

Pure bookkeeping for the consumer's side: feed every item, in order. As long as it is true-ish
something is unsettled, and the actors concerned decide nothing.
"""

from __future__ import annotations

from holdfast.raft.api import Applied, Fate, Installed, Item, ProposalId, RoleChanged


class Unsettled:
    """Own proposals that were in the log when the leadership was lost."""

    def __init__(self) -> None:
        """Nothing is unsettled."""
        self._open: dict[ProposalId, Fate] = {}

    def __len__(self) -> int:
        """Count the proposals whose fate is not known."""
        return len(self._open)

    def __contains__(self, proposal: ProposalId) -> bool:
        """Whether the fate of this proposal is not known."""
        return proposal in self._open

    def settle(self, item: Item) -> list[tuple[ProposalId, Fate]]:
        """Take in an item, return the fates that it reveals.

        Once an entry of a later term is evolved, an older proposal is either in the state before
        it or never will be. A snapshot settles in the same way, but does not tell which.
        """
        match item:
            case RoleChanged():
                self._open |= dict.fromkeys(item.unknown, Fate.NEVER)
            case Applied(proposal=ProposalId() as proposal) if proposal in self._open:
                del self._open[proposal]
                fate = Fate.NEVER if item.skipped else Fate.APPLIED
                return [(proposal, fate), *self._close(item.term)]
            case Applied():
                return self._close(item.term)
            case Installed():
                self._open = dict.fromkeys(self._open, Fate.SEE_STATE)
                return self._close(item.term)
        return []

    def _close(self, term: int) -> list[tuple[ProposalId, Fate]]:
        """Settle what is older than `term`, each with the fate that it has if nothing shows it."""
        older = [(p, fate) for p, fate in self._open.items() if p.term < term]
        for proposal, _ in older:
            del self._open[proposal]
        return older
