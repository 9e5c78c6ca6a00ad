"""Run another module as a program, at the lowest priority.

As a program: `python -m holdfast.runtime.event_log.low_priority PARENT MODULE ARGUMENT...`. The
priority is lowered first: the imports of a module that writes Parquet are half a second of work.
It ends with the process PARENT. Knows nothing of what it runs.
"""

from __future__ import annotations

import resource
import runpy
import sys
from typing import Final

from holdfast.storage.disk import priority

PROCESSOR_SECONDS_MAX: Final = 600
"""Work that takes longer has gone wrong. Of wall time a busy machine may need any amount."""


def main(arguments: list[str]) -> None:
    """Run MODULE as `python -m` does, with the arguments behind it."""
    parent, module, *rest = arguments
    priority.die_with(int(parent))
    priority.lower_process()
    resource.setrlimit(resource.RLIMIT_CPU, (PROCESSOR_SECONDS_MAX, PROCESSOR_SECONDS_MAX))
    sys.argv = [module, *rest]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(sys.argv[1:])
