"""What cannot be started is told apart: wrong use, a lack of the surroundings, our own mistake."""

from __future__ import annotations

import logging
import subprocess

import pytest
from py4j import java_gateway  # type: ignore[import-untyped]  # it has no types
from pyspark.errors import PySparkImportError, PySparkRuntimeError, PySparkValueError

from holdfast.replay.findings import WrongUse
from holdfast.replay.spark import session as module
from holdfast.replay.spark.java import find_java
from holdfast.replay.spark.options import SparkOptions

pytestmark = pytest.mark.slow  # it imports pyspark


def failing(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def start(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(module, "_start", start)
    monkeypatch.setattr(module, "check_answers", lambda _: None)


def test_packages_that_spark_connect_lacks_are_a_missing_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    failing(monkeypatch, PySparkImportError("[PACKAGE_NOT_INSTALLED] grpcio-status"))

    with pytest.raises(WrongUse, match="extra"), module.opened(SparkOptions("sc://h")):
        pass


def test_a_setting_that_a_session_refuses_is_wrong_use_and_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = "[INVALID_CONF_VALUE] The value 'x' in the config \"spark.a.b\" is invalid."
    failing(monkeypatch, PySparkValueError(said))
    options = SparkOptions("sc://h", (("spark.a.b", "x"),))

    with pytest.raises(WrongUse, match=r"--conf spark\.a\.b=x: "), module.opened(options):
        pass


def test_what_is_not_about_settings_is_not_blamed_on_them(monkeypatch: pytest.MonkeyPatch) -> None:
    failing(monkeypatch, PySparkRuntimeError("the network is down"))
    options = SparkOptions("sc://h", (("spark.a.b", "x"),))

    with pytest.raises(PySparkRuntimeError), module.opened(options):
        pass


@pytest.mark.parametrize(("file", "shown"), [(java_gateway.__file__, False), (__file__, True)])
def test_ctrl_c_prints_no_stack_of_py4j(
    file: str, monkeypatch: pytest.MonkeyPatch, *, shown: bool
) -> None:
    """It logs that it was interrupted, or lost its JVM, by no logger of its own."""
    failing(monkeypatch, PySparkRuntimeError("the network is down"))
    with pytest.raises(PySparkRuntimeError), module.opened(SparkOptions("sc://h")):
        pass

    said = logging.LogRecord("root", logging.ERROR, file, 1, "Exception while sending", (), None)

    assert bool(logging.getLogger().filter(said)) is shown


@pytest.mark.parametrize("tuned", [module._QUICK_JVM, module._LONG_JVM], ids=["short", "long"])
def test_java_starts_with_our_options(tuned: tuple[str, ...]) -> None:
    """A JVM refuses what it does not know, and what contradicts itself."""
    started = subprocess.run(
        [find_java(), *tuned, "-version"], capture_output=True, text=True, check=False
    )

    assert started.returncode == 0, started.stderr


@pytest.mark.parametrize("quick", [True, False])
@pytest.mark.parametrize("by_setting", [True, False])
def test_a_garbage_collector_that_somebody_has_chosen_is_not_chosen_again(
    monkeypatch: pytest.MonkeyPatch, *, quick: bool, by_setting: bool
) -> None:
    """With two of them Java does not start; an image may choose one for all that it runs."""
    theirs = "-Dx=y -XX:+UseG1GC"
    settings = {"spark.driver.defaultJavaOptions": theirs} if by_setting else {}
    if not by_setting:
        monkeypatch.setenv("JAVA_TOOL_OPTIONS", theirs)
    ours = module._tuning(SparkOptions("", tuple(settings.items())), quick=quick)
    alone = module._tuning(SparkOptions(), quick=quick)

    assert not [each for each in ours if each.startswith("-XX:+Use")]
    assert "Tier" in " ".join(ours)
    assert by_setting == any(each.startswith("-XX:+Use") for each in alone)
