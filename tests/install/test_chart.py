"""The chart as Helm renders it: nodes would start from it, and Kubernetes knows its fields.

Needs `helm`, and for the fields `kubernetes-validate` (it has Kubernetes' schemas inside), on PATH
or in the folders that HELM and KUBERNETES_VALIDATE name. Nothing here talks to a cluster.
"""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from holdfast.raft.transport.peer_names import node_uri
from holdfast.server.config.node_config import load
from tidy.repository import ROOT

if TYPE_CHECKING:
    from pathlib import Path

CHART = ROOT / "deploy" / "helm" / "holdfast"
HELM = os.environ.get("HELM") or shutil.which("helm") or ""
VALIDATE = os.environ.get("KUBERNETES_VALIDATE") or shutil.which("kubernetes-validate") or ""
VERSION = ("--kube-version", "1.34.0")
"""Helm, asked without a cluster, takes one that is as old as its build says."""
ISSUER = "tls.issuer.name=authority"
EVERYTHING = (
    *("networkPolicy.enabled=true", "serviceMonitor.enabled=true", "prometheusRule.enabled=true"),
    "dashboard.enabled=true",
)
WAYS = {
    "secrets": (),
    "cert-manager": ("tls.source=certManager", ISSUER, *EVERYTHING),
    "csi": ("tls.source=csi", ISSUER, "nodes=5", "antiAffinity=preferred", "bootstrap=false"),
    "one": (
        "nodes=1",
        r"config.log\.segment_bytes_max=67108864",
        "podDisruptionBudget.enabled=false",
    ),
}
SETTINGS = {"one": {"log.segment_bytes_max": "67108864"}}
"""What a way of WAYS sets of the cluster's settings."""
OURS = {"v1", "apps/v1", "policy/v1", "networking.k8s.io/v1"}
"""What Kubernetes itself has; the rest are resources of cert-manager and of Prometheus."""

pytestmark = pytest.mark.skipif(not HELM, reason="helm is not on PATH, nor named by HELM")


def helm(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([HELM, *arguments], capture_output=True, text=True, check=False)


def rendering(*sets: str) -> subprocess.CompletedProcess[str]:
    given = [word for each in sets for word in ("--set", each)]
    where = ("--namespace", "coordination", *VERSION)
    return helm("template", "prod", str(CHART), *where, *given)


@cache
def rendered(way: str) -> str:
    done = rendering(*WAYS[way])
    assert done.returncode == 0, done.stderr
    return done.stdout


def resources(way: str, kind: str) -> list[dict[str, Any]]:
    return [each for each in yaml.safe_load_all(rendered(way)) if each and each["kind"] == kind]


def pod(way: str) -> dict[str, Any]:
    (stateful,) = resources(way, "StatefulSet")
    spec: dict[str, Any] = stateful["spec"]["template"]["spec"]
    return spec


@pytest.mark.parametrize("way", WAYS)
def test_helm_finds_nothing_wrong(way: str) -> None:
    given = [word for each in WAYS[way] for word in ("--set", each)]
    done = helm("lint", "--strict", str(CHART), *VERSION, *given)

    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(not VALIDATE, reason="kubernetes-validate is not here")
@pytest.mark.parametrize("version", ["1.27", "1.34"])
@pytest.mark.parametrize("way", WAYS)
def test_kubernetes_knows_every_field(way: str, version: str, tmp_path: Path) -> None:
    parts = [each for each in yaml.safe_load_all(rendered(way)) if each["apiVersion"] in OURS]
    (tmp_path / "all.yaml").write_text(yaml.safe_dump_all(parts))
    command = [VALIDATE, "--strict", "--kubernetes-version", version, str(tmp_path / "all.yaml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert parts
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("way", WAYS)
def test_each_pod_is_a_node_that_its_file_names(way: str, tmp_path: Path) -> None:
    """The file, the variables and the options of every pod, read by the code that they are for."""
    (config_map,) = [m for m in resources(way, "ConfigMap") if "node.toml" in m["data"]]
    (tmp_path / "node.toml").write_text(config_map["data"]["node.toml"])
    (container,) = pod(way)["containers"]
    (stateful,) = resources(way, "StatefulSet")
    count = stateful["spec"]["replicas"]
    args = container["args"]
    overrides = [after for word, after in itertools.pairwise(args) if word == "--set"]
    for number in range(count):
        name = f"{stateful['metadata']['name']}-{number}"
        variables = {
            each["name"]: each.get("value", name).replace("$(HOLDFAST_NODE_NAME)", name)
            for each in container["env"]
        }
        config = load(tmp_path / "node.toml", variables, overrides)
        domain = f"{stateful['spec']['serviceName']}.coordination.svc.cluster.local"

        assert config.name == name
        assert len(config.peers) == count
        assert (own := config.peer(name)) is not None
        assert str(own.client_address) == f"{name}.{domain}:7400"
        assert config.cluster_id == "prod"
        assert dict(config.settings) == SETTINGS.get(way, {})
        assert config.tls is not None
        assert (str(config.tls.key) == "/tls/tls.key") == (way == "csi")
    assert ("--bootstrap" in args) == (way != "csi")


def test_a_certificate_names_its_node_as_peers_and_clients_ask() -> None:
    certificates = {
        each["metadata"]["name"]: each for each in resources("cert-manager", "Certificate")
    }
    nodes = [name for name in certificates if "-client-" not in name]

    assert nodes == ["prod-holdfast-0", "prod-holdfast-1", "prod-holdfast-2"]
    for name in nodes:
        spec = certificates[name]["spec"]
        assert spec["uris"] == [node_uri("prod", name)]
        assert f"{name}.prod-holdfast-nodes.coordination.svc.cluster.local" in spec["dnsNames"]
        assert set(spec["usages"]) >= {"server auth", "client auth"}
    ops = certificates["prod-holdfast-client-ops"]["spec"]
    assert ops["uris"] == ["holdfast://client/ops"]
    assert "server auth" not in ops["usages"]


def test_with_csi_a_pod_has_its_own_key_alone() -> None:
    (tls,) = [each for each in pod("csi")["volumes"] if each["name"] == "tls"]
    attributes = tls["csi"]["volumeAttributes"]

    assert attributes["csi.cert-manager.io/uri-sans"] == (
        node_uri("prod", "POD").replace("POD", "${POD_NAME}")
    )
    assert "projected" not in tls


@pytest.mark.parametrize("way", WAYS)
def test_a_pod_may_do_little(way: str) -> None:
    spec = pod(way)
    (container,) = spec["containers"]

    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert spec["automountServiceAccountToken"] is False
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def test_nodes_find_each_other_before_they_are_ready_and_start_together() -> None:
    """None is ready without a majority: pods that wait for each other's readiness never start."""
    (stateful,) = resources("secrets", "StatefulSet")
    headless = next(s for s in resources("secrets", "Service") if s["spec"].get("clusterIP"))

    assert stateful["spec"]["podManagementPolicy"] == "Parallel"
    assert stateful["spec"]["serviceName"] == headless["metadata"]["name"]
    assert headless["spec"]["publishNotReadyAddresses"] is True


def test_the_scraper_finds_the_name_that_it_compares_in_each_certificate() -> None:
    (monitor,) = resources("cert-manager", "ServiceMonitor")
    (endpoint,) = monitor["spec"]["endpoints"]

    for each in resources("cert-manager", "Certificate"):
        if "-client-" not in each["metadata"]["name"]:
            assert endpoint["tlsConfig"]["serverName"] in each["spec"]["dnsNames"]
    (rule,) = resources("cert-manager", "PrometheusRule")
    alerts = yaml.safe_load((ROOT / "deploy" / "monitoring" / "alerts.yml").read_text())
    assert rule["spec"] == alerts


def test_a_wrong_value_is_refused_before_anything_is_made() -> None:
    done = rendering("nodes=2")

    assert done.returncode != 0
    assert "nodes" in done.stderr


def test_an_issuer_that_is_not_named_is_asked_for() -> None:
    done = rendering("tls.source=certManager")

    assert done.returncode != 0
    assert "tls.issuer.name" in done.stderr
