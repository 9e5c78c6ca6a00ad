"""`./dev image`: perform the Dockerfile's steps in a plain directory, and say what they came to.

    ./dev image                   build in a temporary directory, print sizes, remove it
    ./dev image --keep DIR        keep the image's root below an empty directory

Needs root, and no Docker. Exit codes: 0 built, 1 a step failed, 2 impossible on this machine.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Final

from image.build import Image, build, installed, size_of, why_not
from tidy.repository import ROOT

if TYPE_CHECKING:
    from collections.abc import Sequence

DOCKERFILE: Final = ROOT / "deploy" / "docker" / "Dockerfile"
MIB: Final = 1 << 20


def main(arguments: Sequence[str]) -> int:
    """Build, and print."""
    parser = argparse.ArgumentParser(
        prog="./dev image",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--keep", type=Path, metavar="DIR")
    keep: Path | None = parser.parse_args(arguments).keep
    if problem := why_not():
        print(f"no image can be built here: {problem}", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="holdfast-image-") as folder:
        try:
            image = build(DOCKERFILE, ROOT, (keep or Path(folder)).resolve())
        except RuntimeError as error:
            print(error, file=sys.stderr)
            return 1
        print_sizes(image)
    return 0


def print_sizes(image: Image) -> None:
    """Print what the image adds to its base, and its largest packages."""
    sizes = Counter({path.name: size_of([path]) for path in installed(image)})
    print(f"base (not built here): {image.stage.base}")
    print(f"added to it: {size_of([image.root / 'opt']) / MIB:.1f} MiB, of which")
    for name, size in sizes.most_common(8):
        print(f"  {size / MIB:7.1f} MiB  {name}")
    print(f"kept below {image.root}, if that was asked for")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
