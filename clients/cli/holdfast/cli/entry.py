"""The entry point of the `holdfast` command: runs the CLI, or says which extra is missing.

`pip install holdfast` installs the light client without the packages that commands and servers
need, yet it installs the command as well. So this module imports only the standard library at
first.
"""

import os
import sys
from importlib import import_module

from holdfast.cli.output import CannotWriteError, check_writes, drop

__all__ = ["main"]

# The smallest extra that brings a package.
_EXTRA_OF = {
    "aiohttp": "server",
    "click": "cli",
    "cryptography": "server",
    "fsspec": "publish",
    "grpc_health": "server",
    "grpc_reflection": "server",
    "lmdb": "server",
    "prometheus_client": "server",
    "pyarrow": "server",
    "pysyncobj": "server",
    "uvloop": "server",
    "matplotlib": "spark",
    "pandas": "spark",
    "pyspark": "spark",
}

INTERRUPTED = 130
"""Exit code by the shells' convention: 128 and the number of SIGINT."""


def main() -> None:
    """Run the command line; end with code 2 and one sentence if its extra is not installed."""
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")  # its core writes past every logger of ours
    check_writes()
    try:
        cli = import_module("holdfast.cli.main")
        cli.main()
    except ModuleNotFoundError as error:
        sentence = missing_extra(error.name or "")
        if sentence is None:
            raise
        print(sentence, file=sys.stderr)  # noqa: T201 - the one thing to say, before any logger
        sys.exit(2)
    except CannotWriteError as error:
        drop()
        print(f"holdfast: cannot write the output: {error}", file=sys.stderr)  # noqa: T201 - as above
        sys.exit(1)
    except KeyboardInterrupt:  # while modules were still being imported: nothing has begun
        sys.exit(INTERRUPTED)


def missing_extra(module: str) -> str | None:
    """Say how to install the extra that brings a module; None if no extra of ours does."""
    package = module.partition(".")[0]
    extra = _EXTRA_OF.get(package)
    if extra is None:
        return None
    return (
        f"holdfast: this needs the package {package}, which comes with the [{extra}] extra. "
        f"Install it: pip install 'holdfast[{extra}]'"
    )
