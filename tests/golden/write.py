"""Write the golden files that are not there yet.

    cd tests && python -m golden.write

A file that exists is never replaced: bytes on disks out there do not change either. For a new level
add a `values_vN.py` with what it adds, a line for it below, and run this. While no release has the
level, delete its files, and run this, whenever it is given one more event or field.
"""

import sys
from pathlib import Path

from golden import values_v1, values_v2, values_v3
from golden.schema import schema_lines
from golden.values_v1 import entry, record
from holdfast.storage.codec.event_codec import encode_entry, encode_record, encode_state
from holdfast.storage.codec.schema_versions import SCHEMA_VERSION

EVENTS = {1: values_v1.EVENTS, 3: values_v3.EVENTS}
"""The events of each schema version: those of its level. Version 2 changed none."""
STATE = {2: values_v2.STATE, 3: values_v3.STATE}
"""What is written of the state in each version; version 1 is only read."""


def files() -> dict[str, list[str]]:
    """The lines of each golden file, by its name."""
    found = {f"schema-v{SCHEMA_VERSION}": schema_lines()}
    for version, events in EVENTS.items():
        found[f"entry-v{version}"] = [
            f"{type(each).__name__} {encode_entry(entry(each)).hex()}" for each in events
        ]
        found[f"record-v{version}"] = [
            f"{type(each).__name__} {encode_record(record(each)).hex()}" for each in events
        ]
    for version, items in STATE.items():
        found[f"state-v{version}"] = [
            f"{type(each.value).__name__} {encode_state(each).hex()}" for each in items
        ]
    return found


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
