"""A second client is certified as the page says, by its own lines, and the cluster lets it in."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID

from cluster.processes import holdfast, running

PAGE = Path(__file__).parents[2] / "docs" / "operations" / "local-clusters.md"


def told_lines() -> str:
    """The commands of the page's section."""
    section = PAGE.read_text().partition("## A second client")[2].partition("\n## ")[0]
    return "\n".join(re.findall(r"^    (.+)$", section, re.MULTILINE))


def test_the_pages_lines_certify_a_client_that_the_cluster_lets_in(tmp_path: Path) -> None:
    """For clients alone: with it nobody can pose as a node to another client."""
    with running(tmp_path / "local", 1) as cluster:
        subprocess.run(
            ["bash", "-euc", told_lines()], cwd=tmp_path, check=True, capture_output=True
        )
        asked = ("--address", cluster.addresses[0], "--tls", str(tmp_path))
        made = holdfast("topic", "create", "documents", "--partitions", "4", *asked)
        events = cluster.ask("log", "tail", "--json").stdout
    certificate = x509.load_pem_x509_certificate((tmp_path / "certificate.pem").read_bytes())
    usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value

    assert made.returncode == 0, made.stderr
    assert "holdfast://client/reports" in events
    assert list(usage) == [ExtendedKeyUsageOID.CLIENT_AUTH]
