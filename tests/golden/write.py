"""Write the golden files of the current schema version, once.

    cd tests && python -m golden.write

A file that exists is never replaced: bytes on disks out there do not change either. Whoever raises
the schema version adds a `values_vN.py` beside it, points the import below to it, and runs this.
"""

import sys
from pathlib import Path

from golden.schema import schema_lines
from golden.values_v1 import EVENTS, entry, record
from golden.values_v2 import STATE
from holdfast.storage.codec.event_codec import (
    SCHEMA_VERSION,
    encode_entry,
    encode_record,
    encode_state,
)
from holdfast.storage.codec.record_head import EVENTS_VERSION


def files() -> dict[str, list[str]]:
    """The lines of each golden file, by its name."""
    return {
        f"entry-v{EVENTS_VERSION}": [
            f"{type(each).__name__} {encode_entry(entry(each)).hex()}" for each in EVENTS
        ],
        f"record-v{EVENTS_VERSION}": [
            f"{type(each).__name__} {encode_record(record(each)).hex()}" for each in EVENTS
        ],
        f"state-v{SCHEMA_VERSION}": [
            f"{type(each.value).__name__} {encode_state(each).hex()}" for each in STATE
        ],
        f"schema-v{SCHEMA_VERSION}": schema_lines(),
    }


def main() -> int:
    """Write what is not there yet; returns the exit code."""
    for name, lines in files().items():
        path = Path(__file__).parent / f"{name}.txt"
        if path.exists():
            print(f"{path.name} exists and stays as it is")
            continue
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        print(f"{path.name} written: {len(lines)} lines")
    return 0


if __name__ == "__main__":
    sys.exit(main())
