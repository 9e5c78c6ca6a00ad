"""The README as an index shows it: no link that leads nowhere, and a URL only if one is known."""

from __future__ import annotations

import importlib.util
import re
import sys
from typing import TYPE_CHECKING

import pytest
from trove_classifiers import classifiers

from tidy.repository import ROOT, pyproject

if TYPE_CHECKING:
    from types import ModuleType

HOST = "https://host.example/team/holdfast"
RELATIVE = re.compile(r"\]\((?!https?://)")


@pytest.fixture(scope="module")
def describe() -> ModuleType:
    spec = importlib.util.spec_from_file_location("describe", ROOT / "deploy/pypi/describe.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["describe"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("repository", ["", HOST])
def test_no_link_of_the_readme_is_relative_on_an_index(
    describe: ModuleType, repository: str
) -> None:
    text = (ROOT / "README.md").read_text()
    assert RELATIVE.search(text)

    assert not RELATIVE.search(describe.described_for_index(text, repository, "v1.2.3"))


def test_a_link_leads_to_the_file_of_that_version(describe: ModuleType) -> None:
    made = describe.described_for_index("[a](docs/x.md#y), [b](#z), [c](https://w)", HOST, "v1")

    assert made == f"[a]({HOST}/blob/v1/docs/x.md#y), [b]({HOST}#z), [c](https://w)"


def test_without_a_repository_the_words_stay(describe: ModuleType) -> None:
    assert describe.described_for_index("see [a](docs/x.md).", "", "v1") == "see a."


@pytest.mark.parametrize("code", ["`x[a](b)`", "    x[a](b)", "```python\nx[a](b)\n```"])
def test_code_is_left_as_it_is(describe: ModuleType, code: str) -> None:
    assert describe.described_for_index(f"text\n\n{code}\n", HOST, "v1") == f"text\n\n{code}\n"


def test_no_url_is_made_up(describe: ModuleType) -> None:
    assert describe.urls("") == {}
    assert all(url.startswith(HOST) for url in describe.urls(HOST).values())


def test_every_classifier_is_one() -> None:
    named = pyproject(ROOT)["project"]["classifiers"]

    assert named
    assert [each for each in named if each not in classifiers] == []
