"""`holdfast certs`: what it makes and tells, and what it refuses before it writes anything."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from holdfast.cli.main import main

if TYPE_CHECKING:
    from click.testing import Result

PAGE = Path(__file__).parents[4] / "docs" / "operations" / "certificates.md"


def certs(*arguments: str, code: int = 0) -> Result:
    """The end of a command, which has this exit code."""
    ended = CliRunner().invoke(main, ["certs", *arguments])
    assert ended.exit_code == code, ended.output
    return ended


@pytest.fixture
def place(tmp_path: Path) -> str:
    """A directory with an authority."""
    certs("init", "--dir", str(tmp_path), "--name", "production")
    return str(tmp_path)


def shown(*files: str) -> list[dict[str, str]]:
    """What `inspect` tells of files."""
    told: list[dict[str, str]] = json.loads(certs("inspect", *files, "--json").stdout)
    return told


def test_a_node_and_clients_are_named_as_asked(place: str) -> None:
    made = certs(
        *("issue", "--dir", place, "node", "node-1"), *("--cluster", "production", "--host", "::1")
    )
    certs("issue", "--dir", place, "client", "billing")
    certs("issue", "client", "spiffe://org/reports", "--dir", place)
    files = [f"{place}/{name}/certificate.pem" for name in ("node-1", "billing", "reports")]
    told = shown(*files)

    assert "made node node-1 in" in made.stdout
    assert "valid until" in made.stdout
    assert [each["kind"] for each in told] == ["node", "client", "client"]
    assert [each["principal"] for each in told] == [
        "holdfast://production/node/node-1",
        "holdfast://client/billing",
        "spiffe://org/reports",
    ]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("node", "n"), "needs --cluster"),
        (("node", "n", "--cluster", "c"), "--host"),
        (("client", "c", "--host", "h"), "are a node's"),
        (("client", "../c"), "Give --out"),
        (("client", ".hidden"), "Give --out"),
        (("client", "c", "--days", "0"), "--days"),
    ],
)
def test_what_makes_no_certificate_is_refused(
    place: str, arguments: tuple[str, ...], why: str
) -> None:
    assert why in certs("issue", "--dir", place, *arguments, code=2).stderr


def test_the_authoritys_folder_is_nobodys(place: str) -> None:
    told = certs("issue", "--dir", place, "client", "authority", code=1)

    assert "holds the authority" in told.stderr


def test_without_an_authority_the_next_step_is_told(tmp_path: Path) -> None:
    told = certs("issue", "--dir", str(tmp_path), "client", "c", code=1)

    assert "`holdfast certs init`" in told.stderr


def test_only_what_expires_soon_is_renewed(place: str) -> None:
    for name, days in (("soon", "20"), ("later", "90")):
        certs("issue", "--dir", place, "client", name, "--days", days)
    files = [f"{place}/{name}/certificate.pem" for name in ("soon", "later")]
    before = [each["fingerprint"] for each in shown(*files)]
    told = certs("renew", "--dir", place, "--within", "30")
    after = [each["fingerprint"] for each in shown(*files)]

    assert "made soon anew" in told.stdout
    assert "later" not in told.stdout
    assert [a == b for a, b in zip(before, after, strict=True)] == [False, True]


def test_the_authority_is_replaced_in_three_steps(place: str) -> None:
    certs("issue", "--dir", place, "client", "c")
    old = shown(f"{place}/authority/ca.pem")
    for step in ("next", "switch"):
        certs("authority", step, "--dir", place)
    refused = certs("authority", "finish", "--dir", place, code=1)
    certs("renew", "--dir", place, "c")
    told = certs("authority", "finish", "--dir", place)
    new = shown(f"{place}/c/ca.pem")

    assert "holdfast certs renew" in refused.stderr
    assert "is trusted no more" in told.stdout
    assert len(new) == 1
    assert new[0]["fingerprint"] != old[0]["fingerprint"]


def test_a_file_without_a_certificate_is_told(place: str) -> None:
    told = certs("inspect", f"{place}/authority/key.pem", code=1)

    assert "key.pem cannot be shown: it has no certificate in PEM" in told.stderr


def test_the_commands_of_the_page_do_what_it_says_in_its_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each line as it stands: none is missing, and none is refused.

    What asks a cluster is run by `./dev drill`.
    """
    monkeypatch.chdir(tmp_path)
    page = PAGE.read_text().partition("## Revoke a certificate")[0]
    blocks = re.findall(r"^```sh\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    lines = [line for block in blocks for line in block.splitlines()]
    for line in lines:
        program, command, *arguments = shlex.split(line)
        assert (program, command) == ("holdfast", "certs")
        certs(*arguments)
    old = shown("pki/authority/ca.pem", "pki/node-1/ca.pem", "pki/billing/ca.pem")

    assert len(lines) > 8
    assert len({each["fingerprint"] for each in old}) == 1
    assert len(old) == 3
