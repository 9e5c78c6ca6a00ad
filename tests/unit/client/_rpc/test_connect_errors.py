"""Why no connection came about: gRPC's words, which differ by resolver and version, in ours."""

from __future__ import annotations

import pytest

from holdfast.client import Tls
from holdfast.client._rpc.connect_errors import explain

TLS = Tls("ca.pem", "certificate.pem", "key.pem")
UNRESOLVED = (
    (
        "errors resolving no.invalid:74: [field:hostname lookup error:address lookup failed for "
        "no.invalid:74: Domain name not found]"
    ),
    (
        "errors resolving no:74: [field:hostname lookup error:Address lookup failed for no:74 "
        "os_error: Name or service not known syscall: getaddrinfo]"
    ),
    (
        "DNS resolution failed for no.invalid:74: C-ares status is not ARES_SUCCESS qtype=A "
        "name=no.invalid is_balancer=0: Domain name not found"
    ),
)
"""Of gRPC's own resolver and of the system's (GRPC_DNS_RESOLVER=native), and an older grpcio's."""
OTHER_NAMES = (
    (
        "failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:1: "
        "Hostname Verification Check failed."
    ),
    "Peer name no.invalid is not in peer certificate",
)


@pytest.mark.parametrize("words", UNRESOLVED)
@pytest.mark.parametrize("credentials", [None, TLS])
def test_a_name_that_cannot_be_resolved_is_no_matter_of_certificates(
    words: str, credentials: Tls | None
) -> None:
    cause = explain(words, credentials)

    assert "cannot be resolved" in cause
    assert "spelling" in cause
    assert "certificate" not in cause


@pytest.mark.parametrize("words", OTHER_NAMES)
def test_a_certificate_for_other_names_is_still_told(words: str) -> None:
    assert "made out for other names" in explain(words, TLS)
