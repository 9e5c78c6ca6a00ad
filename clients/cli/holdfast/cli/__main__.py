"""`python -m holdfast.cli` is the `holdfast` command."""

import sys

# `-m` puts the working directory first on the path, where a file could shadow one of our packages.
# For full safety start Python with -P: this runs after `holdfast` itself was found.
if not sys.flags.safe_path:
    del sys.path[0]

from holdfast.cli.entry import main

main()
