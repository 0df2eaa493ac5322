"""The Helm chart: what helm and the schemas of Kubernetes say of it, and that the settings in it start a server."""

import json
import re
import subprocess
from pathlib import Path

import kubernetes_validate
import pytest
import yaml
from conftest import need
from harness import BIN, clean_environment

TOP = Path(__file__).parents[2]
CHART = TOP / "deploy" / "helm" / "repertoire"
HELM = Path(__file__).parent / ".tools" / "bin" / "helm"
# What the chart says it wants at least, and the newest whose schemas are here.
VERSIONS = ("1.27", "1.37")
SECONDS = 60
pytestmark = pytest.mark.nightly

EVERYTHING = {
    "image": {"repository": "registry.example/repertoire", "digest": "sha256:" + "0" * 64},
    "imagePullSecrets": [{"name": "pull"}],
    "config": {"access": {"anonymous": ["reader"]}, "tools": {"jira": {"token": {"env": "JIRA_TOKEN"}}}},
    "env": [{"name": "JIRA_TOKEN", "valueFrom": {"secretKeyRef": {"name": "jira", "key": "token"}}}],
    "envFrom": [{"secretRef": {"name": "more"}}],
    "volumes": [{"name": "paths", "configMap": {"name": "paths"}}],
    "volumeMounts": [{"name": "paths", "mountPath": "/srv/paths", "readOnly": True}],
    "persistence": {"size": "20Gi", "storageClass": "fast", "annotations": {"a": "b"}},
    "service": {"type": "NodePort", "annotations": {"a": "b"}, "appProtocol": "kubernetes.io/h2c"},
    "ingress": {
        "enabled": True, "className": "nginx", "host": "skills.example.com", "tlsSecretName": "skills-tls",
        "annotations": {"nginx.ingress.kubernetes.io/proxy-body-size": "24m"},
    },
    "networkPolicy": {
        "enabled": True, "from": [{"namespaceSelector": {"matchLabels": {"team": "agents"}}}],
        "egress": [{"ports": [{"port": 443, "protocol": "TCP"}]}],
    },
    "serviceAccount": {"annotations": {"a": "b"}},
    "podAnnotations": {"a": "b"}, "podLabels": {"a": "b"}, "nodeSelector": {"disk": "ssd"},
    "tolerations": [{"key": "skills", "operator": "Exists"}],
    "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}},
    "priorityClassName": "high",
}
CASES = {
    "nothing": {},
    "everything": EVERYTHING,
    "tls": {"tls": {"secretName": "skills-tls"}},
    "no volume": {"persistence": {"enabled": False}},
    "what is there": {"persistence": {"existingClaim": "skills"}, "existingConfigSecret": "skills", "serviceAccount": {"name": "skills"}},
    "no egress": {"networkPolicy": {"enabled": True, "egress": []}},
}


@pytest.fixture(autouse=True)
def needs_helm():
    need(HELM, "helm")


def helm(command, tmp_path, values, *options):
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump(values))
    name = ("skills", CHART, "--namespace", "team") if command == "template" else (CHART,)
    return subprocess.run(
        [HELM, command, *name, "--values", file, *options], capture_output=True, text=True, timeout=SECONDS,
        env=clean_environment() | {"HELM_CACHE_HOME": str(tmp_path / "cache"), "HELM_CONFIG_HOME": str(tmp_path / "config")},
    )


def rendered(tmp_path, values, version=VERSIONS[-1]):
    """The objects of a release, by kind."""
    done = helm("template", tmp_path, values, "--kube-version", version)
    assert (done.returncode, done.stderr) == (0, ""), done
    objects = [it for it in yaml.safe_load_all(done.stdout) if it]
    assert len({it["kind"] for it in objects}) == len(objects)
    return {it["kind"]: it for it in objects}


def pod(objects):
    return objects["StatefulSet"]["spec"]["template"]["spec"]


@pytest.mark.parametrize("case", CASES)
def test_helm_and_the_schemas_of_kubernetes_take_the_chart(tmp_path, case):
    done = helm("lint", tmp_path, CASES[case], "--strict", "--kube-version", VERSIONS[-1])
    assert done.returncode == 0 and "0 chart(s) failed" in done.stdout, done
    for version in VERSIONS:
        for found in rendered(tmp_path, CASES[case], version).values():
            kubernetes_validate.validate(found, version, strict=True)


def test_a_release_has_these_objects(tmp_path):
    default = {"ServiceAccount", "Secret", "Service", "StatefulSet"}
    assert {case: set(rendered(tmp_path, values)) for case, values in CASES.items()} == {
        "nothing": default,
        "everything": default | {"Ingress", "NetworkPolicy"},
        "tls": default,
        "no volume": default,
        "what is there": {"Service", "StatefulSet"},
        "no egress": default | {"NetworkPolicy"},
    }


def test_one_process_without_rights_has_the_volume(tmp_path):
    objects = rendered(tmp_path, {})
    spec, (container,) = objects["StatefulSet"]["spec"], pod(objects)["containers"]
    assert (spec["replicas"], pod(objects)["automountServiceAccountToken"]) == (1, False)
    assert pod(objects)["securityContext"] == {
        "runAsNonRoot": True, "runAsUser": 65532, "runAsGroup": 65532, "fsGroup": 65532,
        "fsGroupChangePolicy": "OnRootMismatch", "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
    }
    (claim,) = spec["volumeClaimTemplates"]
    assert (claim["metadata"]["name"], claim["spec"]["accessModes"]) == ("data", ["ReadWriteOnce"])
    assert container["image"] == f"repertoire:{version()}"


def test_the_server_is_asked_by_grpc_or_where_it_has_tls_by_itself(tmp_path):
    probes = ("startupProbe", "livenessProbe", "readinessProbe")
    (plain,), (tls,) = (pod(rendered(tmp_path, values))["containers"] for values in ({}, CASES["tls"]))
    # A certificate may come another way, and settings of which nothing is known may have one.
    for values in ({"config": {"tls": {"certificate": "/c", "key": "/k"}}}, {"existingConfigSecret": "mine"}):
        (other,) = pod(rendered(tmp_path, values))["containers"]
        assert [other[probe]["exec"] for probe in probes] == [tls[probe]["exec"] for probe in probes], values
    assert [plain[probe]["grpc"] for probe in probes] == [{"port": 50051, "service": "repertoire.v1.Lookup"}] * 3
    assert [tls[probe]["exec"] for probe in probes] == [{"command": ["/usr/bin/repertoire", "status"]}] * 3
    assert {"name": "tls", "mountPath": "/etc/repertoire/tls", "readOnly": True} in tls["volumeMounts"]


def test_the_settings_are_under_what_the_values_say(tmp_path):
    names = [f"skills-repertoire{more}" for more in ("", ".team", ".team.svc", ".team.svc.cluster.local")]
    assert settings(rendered(tmp_path, EVERYTHING)) == {
        "listen": "0.0.0.0:50051", "log_format": "json",
        "access": {"sign_in": "tokens", "behind_proxy": True, "anonymous": ["reader"]},
        "web": {"allowed_hosts": [*names, "skills.example.com"]},
        "tools": {"jira": {"token": {"env": "JIRA_TOKEN"}}},
    }
    assert settings(rendered(tmp_path, CASES["tls"])) == {
        "listen": "0.0.0.0:50051", "log_format": "json", "access": {"sign_in": "tokens"}, "web": {"allowed_hosts": names},
        "tls": {"certificate": "/etc/repertoire/tls/tls.crt", "key": "/etc/repertoire/tls/tls.key"},
    }


def test_other_settings_are_another_pod(tmp_path):
    def sum_of(values):
        annotations = rendered(tmp_path, values)["StatefulSet"]["spec"]["template"]["metadata"]["annotations"]
        return annotations["checksum/config"]

    assert sum_of({}) == sum_of({"podLabels": {"a": "b"}}) != sum_of({"config": {"log": "warn"}})


def test_a_server_starts_with_the_settings_of_the_chart_and_asks_for_a_token(start, tmp_path):
    text = rendered(tmp_path, {})["Secret"]["stringData"]["config.yaml"]
    file = tmp_path / "config.yaml"
    file.write_text(text.replace("0.0.0.0:50051", "0.0.0.0:0").replace("log_format: json", "log_format: text"))
    done = repertoire("config", "check", file, "--data", tmp_path / "data")
    assert (done.returncode, done.stdout.split("\n")[0]) == (0, "ok"), done
    server = start("--config", str(file), listen="127.0.0.1:0").ready()
    done = repertoire("list", "--server", f"http://{server.address}")
    assert done.returncode == 1 and "SIGN_IN_REQUIRED" in done.stderr, done


WRONG = {
    "a key that is not known": ({"replicas": 2}, "'replicas' not allowed"),
    "a port that is none": ({"service": {"port": 70000}}, "'/service/port'"),
    "a digest that is none": ({"image": {"digest": "sha256:1"}}, "'/image/digest'"),
    "a size that is none": ({"persistence": {"size": "much"}}, "'/persistence/size'"),
    "an ingress without a host": ({"ingress": {"enabled": True}}, "ingress.host: the name that clients use"),
}


@pytest.mark.parametrize("case", WRONG)
def test_values_that_are_wrong_are_refused(tmp_path, case):
    values, said = WRONG[case]
    done = helm("template", tmp_path, values, "--kube-version", VERSIONS[-1])
    assert done.returncode == 1 and said in done.stderr, done


def test_the_chart_has_the_version_of_the_program():
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == (version(), version())
    # Every value that there is has its place in the schema.
    values, schema = yaml.safe_load((CHART / "values.yaml").read_text()), json.loads((CHART / "values.schema.json").read_text())
    assert set(values) == set(schema["properties"]) - {"global"}


def repertoire(*words):
    return subprocess.run([BIN, *words], env=clean_environment(), capture_output=True, text=True, timeout=SECONDS)


def settings(objects):
    return yaml.safe_load(objects["Secret"]["stringData"]["config.yaml"])


def version():
    return re.search(r'^version = "(.*)"', (TOP / "Cargo.toml").read_text(), re.MULTILINE)[1]
