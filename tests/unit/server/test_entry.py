"""The door of the `holdfast` command: a missing extra is named, any other fault is shown whole."""

import pytest

from holdfast.server import entry


def test_a_package_of_the_server_extra_is_named_with_the_command() -> None:
    sentence = entry.missing_extra("lmdb") or ""

    assert "lmdb" in sentence
    assert sentence.endswith("pip install 'holdfast[server]'")


def test_a_module_inside_a_package_of_the_spark_extra_counts_as_the_package() -> None:
    sentence = entry.missing_extra("pyspark.sql") or ""

    assert sentence.endswith("pip install 'holdfast[spark]'")


def test_a_module_that_no_extra_brings_is_a_fault_and_stays_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def lost(name: str) -> None:
        raise ModuleNotFoundError(name, name="holdfast.server.cli")

    monkeypatch.setattr(entry, "import_module", lost)

    with pytest.raises(ModuleNotFoundError):
        entry.main()
