"""Run another module as a node's child, without lowering its priority: for tests that wait for it.

Where tests keep every core busy, work of the lowest priority takes minutes that nobody learns from.
"""

from __future__ import annotations

import runpy
import sys

from holdfast.storage.disk import priority


def main(arguments: list[str]) -> None:
    """Run MODULE as `event_log.low_priority` does, at the priority of whoever started this."""
    parent, module, *rest = arguments
    priority.die_with(int(parent))
    sys.argv = [module, *rest]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(sys.argv[1:])
