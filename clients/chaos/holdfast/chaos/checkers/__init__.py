"""Judges of a history: one file per invariant, a catalogue of them, and the judgement of all.

They see a history and nothing else: no client, no process, no clock.
"""

from holdfast.chaos.checkers.catalogue import ALL, TITLES
from holdfast.chaos.checkers.judgement import Judgement, Unsound, judge

__all__ = ["ALL", "TITLES", "Judgement", "Unsound", "judge"]
