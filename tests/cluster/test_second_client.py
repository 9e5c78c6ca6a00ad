"""A second client is certified and granted as the page says, by its own lines, and let in."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID

from cluster.processes import holdfast, running

PAGE = Path(__file__).parents[2] / "docs" / "operations" / "local-clusters.md"


def section() -> str:
    """What the page says of a second client."""
    return PAGE.read_text().partition("## A second client")[2].partition("\n## ")[0]


def told_lines() -> str:
    """The commands by which it is certified."""
    return "\n".join(re.findall(r"^    (.+)$", section(), re.MULTILINE))


def told_grant() -> list[str]:
    """The words after `holdfast` by which it is granted something, but for the cluster's name."""
    (told,) = re.findall(r"`holdfast (acl grant .+) --cluster local`", section())
    return shlex.split(told)


def test_the_pages_lines_certify_a_client_that_the_cluster_lets_in(tmp_path: Path) -> None:
    """For clients alone: with it nobody can pose as a node to another client."""
    with running(tmp_path / "local", 1) as cluster:
        subprocess.run(
            ["bash", "-euc", told_lines()], cwd=tmp_path, check=True, capture_output=True
        )
        asked = ("--address", cluster.addresses[0], "--tls", str(tmp_path))
        create = ("topic", "create", "documents", "--partitions", "4", *asked)
        stranger = holdfast(*create)
        cluster.ask(*told_grant())
        made = holdfast(*create)
        events = cluster.ask("log", "tail", "--json").stdout
    certificate = x509.load_pem_x509_certificate((tmp_path / "certificate.pem").read_bytes())
    usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value

    assert stranger.returncode == 1
    assert "`holdfast acl grant " in stranger.stderr
    assert made.returncode == 0, made.stderr
    assert "holdfast://client/reports" in events
    assert list(usage) == [ExtendedKeyUsageOID.CLIENT_AUTH]
