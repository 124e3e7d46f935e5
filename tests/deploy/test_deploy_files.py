"""What lies in deploy/ for running on many machines fits the program: settings, commands, times, names. OPS-09."""

from __future__ import annotations

import configparser
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests import needs
from tests.test_docs import parse

from DocsToKG.ContentDownload.config.loader import load_config
from DocsToKG.ContentDownload.config.models import ContentDownloadConfig
from DocsToKG.ContentDownload.errors import ConfigError
from DocsToKG.Orchestrator.settings import load_settings

DEPLOY = Path(__file__).parents[2] / "deploy"
SETTINGS = DEPLOY / "prod.yaml"
UNIT = DEPLOY / "systemd" / "contentdownload-worker@.service"
SERVER, SERVER_UNIT = DEPLOY / "server.yaml", DEPLOY / "systemd" / "docstokg-orchestrator.service"
COMPOSE = DEPLOY / "compose" / "compose.yaml"
TRY = DEPLOY / "compose" / "try.env"
KUBERNETES = DEPLOY / "kubernetes" / "worker.yaml"
TEXTS = (SETTINGS, UNIT, SERVER, SERVER_UNIT, COMPOSE, TRY, KUBERNETES, DEPLOY / "compose" / "Dockerfile")
MARGIN_S = 15  # what a worker does after the drain: close its record, end its processes


def variables() -> dict[str, str]:
    lines = [line for line in TRY.read_text().splitlines() if line and not line.startswith("#")]
    return dict(line.split("=", 1) for line in lines)


@pytest.fixture(scope="module")
def settings() -> ContentDownloadConfig:
    return load_config(SETTINGS, environ=variables())


@pytest.fixture(scope="module")
def unit() -> dict[str, list[str]]:
    return lines_of(UNIT)


def lines_of(unit: Path) -> dict[str, list[str]]:
    """The lines of a service, by name; a name may stand there more than once."""
    found: dict[str, list[str]] = {}
    section = ""
    for line in unit.read_text().splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif line and not line.startswith("#"):
            name, _, value = line.partition("=")
            found.setdefault(f"{section}.{name}", []).append(value)
    return found


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    return dict(yaml.safe_load(COMPOSE.read_text()))


@pytest.fixture(scope="module")
def kubernetes() -> dict[str, Any]:
    return {one["kind"]: one for one in yaml.safe_load_all(KUBERNETES.read_text())}


@pytest.fixture(scope="module")
def worker(kubernetes: dict[str, Any]) -> dict[str, Any]:
    [container] = kubernetes["Deployment"]["spec"]["template"]["spec"]["containers"]
    return dict(container)


def test_the_settings_load_with_the_variables_that_they_name(settings: ContentDownloadConfig) -> None:
    assert (settings.queue.backend, settings.queue.signal) == ("postgres", "nats")
    assert settings.catalog.url == settings.queue.url is not None
    assert (settings.rate_limit.backend, settings.hishel.backend, settings.storage.backend) == ("redis", "redis", "s3")
    named = set(re.findall(r"DOCSTOKG_CONTENT_\w+", SETTINGS.read_text())) - {"DOCSTOKG_CONTENT_QUEUE__NODE_ID"}
    assert named == {name for name in variables() if name.startswith("DOCSTOKG_")}


def test_without_the_variables_each_missing_address_is_named() -> None:
    given = variables()
    for name in [name for name in given if name.startswith("DOCSTOKG_")]:
        key = name.removeprefix("DOCSTOKG_CONTENT_").lower().replace("__", ".")
        with pytest.raises(ConfigError, match=re.escape(key.split(".")[1])):
            load_config(SETTINGS, environ={one: value for one, value in given.items() if one != name})


@pytest.mark.parametrize("file", [SETTINGS, SERVER], ids=lambda file: file.name)
def test_every_setting_is_explained_and_none_is_a_secret(file: Path) -> None:
    lines = file.read_text().splitlines()
    assert [line for line in lines if re.match(r"\s*[a-z_]+:\s*[^#\s]", line) and " # " not in line] == []
    assert not re.search(r"^[^#]*(password|secret|://[^/\s]*:[^/\s]*@)", file.read_text(), re.MULTILINE)


def test_every_variable_that_is_named_anywhere_exists() -> None:
    for text in TEXTS:
        for name in set(re.findall(r"DOCSTOKG_CONTENT_[A-Z_]+[A-Z]", text.read_text())):
            given = {**variables(), name: variables().get(name, "word")}
            assert load_config(SETTINGS, environ=given).queue.backend == "postgres", name


def calls(unit: dict[str, list[str]], compose: dict[str, Any], worker: dict[str, Any]) -> Iterator[list[str]]:
    """Every call of the program in these files, as words."""
    for name, values in (*unit.items(), *lines_of(SERVER_UNIT).items()):
        if name.startswith("Service.Exec"):
            yield from (shlex.split(value.rpartition("/opt/docstokg/bin/")[2]) for value in values)
    for service in ("worker-1", "worker-2"):
        yield ["contentdownload", *compose["services"][service]["command"]]
        yield compose["services"][service]["healthcheck"]["test"][1:]
    yield [*worker["command"], *worker["args"]]
    yield worker["readinessProbe"]["exec"]["command"]
    for line in SERVER.read_text().splitlines():
        if found := re.match(r"#\s+(docstokg-orchestrator .*?)  .*$", line):
            yield shlex.split(found[1])
    for text in (COMPOSE, SETTINGS):
        for line in text.read_text().splitlines():
            if found := re.match(
                r"#\s+(?:docker compose .* run --rm worker-1|(contentdownload)) (.*?)(?:  .*)?$", line
            ):
                yield ["contentdownload", *shlex.split(found[2])]


def test_every_command_that_is_named_is_understood(
    unit: dict[str, list[str]], compose: dict[str, Any], worker: dict[str, Any]
) -> None:
    found = list(calls(unit, compose, worker))
    assert Counter(call[0] for call in found)["docstokg-orchestrator"] == 2
    assert len(found) >= 13
    for call in found:
        parse(call)


def test_whoever_stops_a_worker_waits_longer_than_it_drains(
    settings: ContentDownloadConfig, unit: dict[str, list[str]], compose: dict[str, Any], kubernetes: dict[str, Any]
) -> None:
    needed = settings.orchestrator.drain_seconds + MARGIN_S
    [stop] = unit["Service.TimeoutStopSec"]
    assert float(stop) > needed
    assert kubernetes["Deployment"]["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] > needed
    for name in ("worker-1", "worker-2"):
        assert float(compose["services"][name]["stop_grace_period"].removesuffix("s")) > needed


def test_leases_outlive_several_heartbeats(settings: ContentDownloadConfig) -> None:
    assert settings.orchestrator.lease_ttl_seconds >= 3 * settings.orchestrator.heartbeat_seconds


def test_images_have_versions(compose: dict[str, Any], worker: dict[str, Any]) -> None:
    images = [service["image"] for service in compose["services"].values()] + [worker["image"]]
    images += re.findall(r"^FROM (\S+)", (DEPLOY / "compose" / "Dockerfile").read_text(), re.MULTILINE)
    for image in images:
        assert re.fullmatch(r"[a-z0-9./-]+:\d[\w.-]*", image), image


# systemd


def test_the_unit_stops_one_process_first_and_keeps_a_folder_of_its_own(unit: dict[str, list[str]]) -> None:
    assert unit["Service.KillMode"] == ["mixed"]
    assert unit["Service.KillSignal"] == ["SIGTERM"]
    assert unit["Service.StateDirectory"] == ["docstokg/%i"]
    assert unit["Service.WorkingDirectory"] == ["%S/docstokg/%i"]
    assert any(value.endswith("NODE_ID=%l-%i") for value in unit["Service.Environment"])
    assert unit["Service.Restart"] == ["always"]


def test_the_settings_of_the_service_load_and_a_supervisor_waits_longer_than_it_drains() -> None:
    served, unit = load_settings(SERVER), lines_of(SERVER_UNIT)
    assert served.behind_tls_proxy
    assert served.auth.has_keys
    assert str(served.ledger_url).startswith("postgresql://docstokg@")
    assert float(unit["Service.TimeoutStopSec"][0]) > served.drain_seconds + MARGIN_S
    assert unit["Service.Environment"] == ["PGPASSFILE=/etc/docstokg/pgpass"]
    assert unit["Service.Restart"] == ["always"]


@pytest.mark.parametrize("unit", [UNIT, SERVER_UNIT], ids=lambda file: file.name)
def test_the_units_can_be_read(unit: Path) -> None:
    parser = configparser.ConfigParser(interpolation=None, strict=False, allow_no_value=True)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(unit.read_text())
    assert parser.sections() == ["Unit", "Service", "Install"]


def verify(folder: Path, unit: Path, text: str) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).parent
    file = folder / unit.name.replace("@.", "@1.")
    file.write_text(text.replace("/opt/docstokg/bin", str(program)))
    command = ["systemd-analyze", "verify", "--man=no", str(file)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("unit", [UNIT, SERVER_UNIT], ids=lambda file: file.name)
def test_systemd_itself_finds_nothing_wrong_with_the_units(tmp_path: Path, unit: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        needs.lacks("systemd-analyze", even_in_ci=True)  # parsed above, and systemd is not everywhere
    done = verify(tmp_path, unit, unit.read_text())
    assert (done.returncode, done.stderr) == (0, "")
    assert "KillSignum" in verify(tmp_path, unit, unit.read_text().replace("KillSignal", "KillSignum")).stderr


# compose


def test_what_compose_refers_to_is_there(compose: dict[str, Any]) -> None:
    services = compose["services"]
    for name, service in services.items():
        assert set(service.get("depends_on", {})) <= set(services), name
        for file in service.get("env_file", ()):
            assert (COMPOSE.parent / file).is_file()
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            assert (COMPOSE.parent / source).is_file() if source.startswith(".") else source in compose["volumes"]
        for config in service.get("configs", ()):
            assert config["source"] in compose["configs"]
        if "build" in service:
            root = (COMPOSE.parent / service["build"]["context"]).resolve()
            assert (root / service["build"]["dockerfile"]).is_file()
    waited = {
        name for one in services.values() for name, how in one.get("depends_on", {}).items() if "healthy" in str(how)
    }
    assert all("healthcheck" in services[name] for name in waited)


def test_the_addresses_of_the_try_are_services_with_these_passwords(compose: dict[str, Any]) -> None:
    text = str(compose)
    for address in [value for value in variables().values() if "://" in value]:
        found = re.fullmatch(r"\w+://(?:(\w*):([\w-]+)@)?(\w+):\d+(/\w+)?", address)
        assert found is not None, address
        assert found[3] in compose["services"]
        assert found[2] is None or found[2] in text
    assert variables()["AWS_SECRET_ACCESS_KEY"] in text
    assert "papers" in " ".join(compose["services"]["bucket"]["entrypoint"])


def test_two_workers_of_the_try_have_names_and_nothing_else_of_their_own(compose: dict[str, Any]) -> None:
    one, two = (dict(compose["services"][name]) for name in ("worker-1", "worker-2"))
    assert one.pop("environment") != two.pop("environment")
    assert one == two
    assert one["read_only"] is True


# Kubernetes


def test_a_pod_cannot_write_but_where_it_may(worker: dict[str, Any], kubernetes: dict[str, Any]) -> None:
    pod = kubernetes["Deployment"]["spec"]["template"]["spec"]
    assert worker["securityContext"]["readOnlyRootFilesystem"] is True
    assert pod["securityContext"]["runAsNonRoot"] is True
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    mounts = {mount["mountPath"]: mount["name"] for mount in worker["volumeMounts"]}
    assert set(mounts.values()) == set(volumes)
    assert "emptyDir" in volumes[mounts[worker["workingDir"]]]


def test_the_folder_of_a_pod_has_room_for_files_on_their_way(
    worker: dict[str, Any], kubernetes: dict[str, Any], settings: ContentDownloadConfig
) -> None:
    pod = kubernetes["Deployment"]["spec"]["template"]["spec"]
    [size] = [one["emptyDir"]["sizeLimit"] for one in pod["volumes"] if one["name"] == "work"]
    room = int(size.removesuffix("Gi")) * 2**30
    assert room > settings.storage.staging_bytes + settings.storage.min_free_bytes
    assert int(worker["resources"]["limits"]["ephemeral-storage"].removesuffix("Gi")) * 2**30 >= room


def test_a_pod_is_alive_while_it_writes_the_figures_that_the_settings_name(
    worker: dict[str, Any], settings: ContentDownloadConfig, tmp_path: Path
) -> None:
    shell, flag, script = worker["livenessProbe"]["exec"]["command"]
    assert f"{worker['workingDir']}/{settings.telemetry.metrics_file}" in script
    file = tmp_path / "metrics.prom"
    here = script.replace(f"{worker['workingDir']}/{settings.telemetry.metrics_file}", str(file))
    assert subprocess.run([shell, flag, here], stderr=subprocess.DEVNULL, check=False, timeout=60).returncode == 1
    file.write_text("")
    assert subprocess.run([shell, flag, here], check=False, timeout=60).returncode == 0
    os.utime(file, (1, 1))
    assert subprocess.run([shell, flag, here], check=False, timeout=60).returncode == 1


def test_secrets_of_a_pod_are_references(worker: dict[str, Any]) -> None:
    assert worker["envFrom"] == [{"secretRef": {"name": "docstokg-secrets"}}]
    plain = {one["name"] for one in worker["env"] if "value" in one}
    assert plain == {"HOME"}


def test_disruptions_and_selectors_mean_the_pods(kubernetes: dict[str, Any]) -> None:
    spec = kubernetes["Deployment"]["spec"]
    labels = spec["template"]["metadata"]["labels"]
    assert spec["selector"]["matchLabels"] == labels
    assert kubernetes["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"] == labels
    assert kubernetes["PodDisruptionBudget"]["spec"]["maxUnavailable"] == 1


def test_the_bounds_of_a_pod_are_set(worker: dict[str, Any]) -> None:
    assert {"cpu", "memory", "ephemeral-storage"} == set(worker["resources"]["requests"])
    assert "memory" in worker["resources"]["limits"]
