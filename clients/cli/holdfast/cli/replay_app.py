"""How a command calls `holdfast.replay.app`, and what it says if that is impossible.

The replay comes with an extra of its own, so it is imported when a command runs.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from holdfast.cli.ending import FAILED, UNCHECKED, UNREACHED, fail

if TYPE_CHECKING:
    from collections.abc import Callable

USAGE: Final = 2
"""Exit code for a missing extra, as for wrong usage."""


def run(use: Callable[[Any], Any], unable: int = FAILED) -> Any:  # noqa: ANN401 - holdfast.replay.app, unknown here
    """Use `holdfast.replay.app`; ends the command with one sentence if that is impossible.

    `unable`: the exit code if a file could not be read or written.
    """
    try:
        app = import_module("holdfast.replay.app")
    except ModuleNotFoundError:
        raise  # a package of the extra: `holdfast.cli.entry` knows the sentence
    except ImportError as error:
        fail(str(error), USAGE)
    try:
        return use(app)
    except (app.WrongUse, FileNotFoundError) as error:
        fail(str(error), USAGE)
    except app.Unreached as error:
        fail(str(error), UNREACHED)
    except (app.CannotCheck, app.NoJava) as error:
        fail(str(error), UNCHECKED)
    except OSError as error:
        fail(_said(error), unable)
    except ValueError as error:
        fail(str(error))


def _said(error: OSError) -> str:
    """Say in a sentence what the system refused, without the number of the error."""
    if error.strerror and error.filename:
        return f"cannot read or write {error.filename}: {error.strerror}"
    return str(error)
