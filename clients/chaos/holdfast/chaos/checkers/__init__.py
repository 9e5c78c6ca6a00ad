"""Checkers of a history: one file per invariant, their catalogue, and the judgement by all.

They see a history and nothing else: no client, no process, no clock.
"""

from holdfast.chaos.checkers.catalogue import ALL, TITLES
from holdfast.chaos.checkers.judgement import Judgement, Unsound, judge

__all__ = ["ALL", "TITLES", "Judgement", "Unsound", "judge"]
