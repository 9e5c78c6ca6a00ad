"""Writes docs/operations/metrics.md from the catalogue.

`python -m holdfast.server.metrics.text` prints it. So no metric can be undocumented.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from holdfast.server.metrics.catalogue import METRICS

if TYPE_CHECKING:
    from collections.abc import Iterator

_HEAD: Final = """\
# Metrics

A node with an HTTP port ([health](health.md)) shows metrics at `/metrics`, in the text format of
Prometheus. With certificates the scraper needs a client's, whose principal is a reader of the
cluster ([permissions](permissions.md)); else the answer is 401 or 403, with the reason:

    holdfast certs issue --dir pki client prometheus
    holdfast acl grant holdfast://client/prometheus reader --on-cluster

Labels have few values: none is the name of a group, a member, a topic or a principal. A counter
begins at 0 when the process starts. A node that was started counts no groups, members, topics and
partitions before it
[has caught up](../adr/0038-a-node-that-was-started-catches-up-before-it-tells.md).

[deploy/monitoring](../../deploy/monitoring/README.md) has alerts, with a runbook for each, and a
dashboard for Grafana.

    scrape_configs:
      - job_name: holdfast
        scheme: https
        tls_config: {ca_file: ca.pem, cert_file: certificate.pem, key_file: key.pem}
        static_configs:
          - targets: ["10.0.0.1:7600", "10.0.0.2:7600", "10.0.0.3:7600"]

This page is generated: `python -m holdfast.server.metrics.text > docs/operations/metrics.md`.

| name | type | meaning | unit | labels |
| --- | --- | --- | --- | --- |
"""


def page() -> str:
    """Build the whole page."""
    return _HEAD + "".join(f"{row}\n" for row in _rows())


def _rows() -> Iterator[str]:
    for metric in METRICS:
        labels = ", ".join(f"`{label}`" for label in metric.labels)
        cells = (f"`{metric.name}`", metric.kind, metric.text, metric.unit or "–", labels or "–")
        yield f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.stdout.write(page())
