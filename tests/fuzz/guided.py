"""One target under a coverage-guided fuzzer, in a process of its own: it may crash, hang or swell.

    python -m fuzz.guided TARGET CORPUS [libFuzzer's flags]

Needs atheris, which has wheels for Linux only.
"""

from __future__ import annotations

import sys
from pathlib import Path

import atheris  # type: ignore[import-not-found,import-untyped,unused-ignore]  # no types, few wheels

with atheris.instrument_imports(include=["holdfast", "google.protobuf", "tomllib", "json"]):
    from fuzz.targets import targets


def main() -> None:
    """Fuzz until a flag ends it; the exit code is libFuzzer's."""
    name, corpus, *flags = sys.argv[1:]
    target = targets()[name]
    folder = Path(corpus)
    folder.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(target.seeds):
        (folder / f"seed-{number}").write_bytes(seed)
    atheris.Setup([sys.argv[0], *flags, str(folder)], target)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
