"""`python -m holdfast.cli` is the `holdfast` command."""

import sys

# `-m` puts the working directory first, and what lies there must not run in place of a package of
# ours. Where it counts, start Python with -P: this comes after `holdfast` itself was found.
if not sys.flags.safe_path:
    del sys.path[0]

from holdfast.cli.entry import main

main()
