"""What lies in deploy/ against a real Prometheus that scrapes a real run: every expression answers (DASH)."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests import needs
from tests.ports import free_port

from DocsToKG.ContentDownload.config.loader import load_config
from DocsToKG.ContentDownload.inputs import coerce_works
from DocsToKG.ContentDownload.runner import DownloadRun
from DocsToKG.ContentDownload.telemetry.metrics import METRICS
from DocsToKG.Sandbox.faults import Faults
from DocsToKG.Sandbox.profile import SandboxServer

PROJECT = Path(__file__).parents[2]
DEPLOY = PROJECT / "deploy"
WORKS = 24
QUICK = replace(Faults(), slow=0.0, stalled=0.0, robots_down=0.0, crawl_delay=0.0)  # no figure hangs on these
DASHBOARDS = sorted((DEPLOY / "grafana").glob("*.json"))
RULES = DEPLOY / "prometheus" / "rules.yml"
HOWTO = PROJECT / "docs" / "howto" / "watch-the-queue.md"

# Nothing to show where nobody asks with HEAD, no breaker opens, no label is folded and no place is taken.
MAY_BE_EMPTY = frozenset({"HEAD latency", "Breakers that opened", "Labels folded", "Waits for a place"})
_LEGEND_MAY_BE_EMPTY = ("again:",)
_WORD = re.compile(r"[a-z_:]+[a-z0-9_:]*", re.IGNORECASE)
_LABELS = re.compile(r"\b([a-z_]+[a-z0-9_]*)\{([^}]*)\}", re.IGNORECASE)


@dataclass(frozen=True)
class Expression:
    where: str
    title: str
    legend: str
    text: str

    def __str__(self) -> str:
        return f"{self.where}: {self.title}"


def panels(board: Path) -> list[dict[str, Any]]:
    return [panel for panel in json.loads(board.read_text())["panels"] if panel["type"] != "row"]


def shown() -> list[Expression]:
    return [
        Expression(board.stem, panel["title"], target["legendFormat"], target["expr"])
        for board in DASHBOARDS
        for panel in panels(board)
        for target in panel["targets"]
    ]


def rules() -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


def ruled() -> list[Expression]:
    return [Expression("rules", rule.get("alert") or rule["record"], "", rule["expr"]) for rule in rules()]


# What every run has, from its first moment.
PROMISED_ALWAYS = (
    *("contentdownload_queue_depth", "content_queue_depth", "content_workers_active", "content_cache_hit_ratio"),
    *("contentdownload_jobs_completed_total", "contentdownload_jobs_failed_total", "contentdownload_jobs_inflight"),
    *("job_queue_depth", "job_failures_total", "job_retry_total", "lease_extensions_total"),
    *("job_latency_seconds_bucket", "contentdownload_rate_sleep_ms_bucket", "contentdownload_queue_wait_ms_bucket"),
)


# names


def series_names() -> set[str]:
    names = {metric.name for metric in METRICS}
    tails = ("_bucket", "_count", "_sum")
    return names | {f"{metric.name}{tail}" for metric in METRICS if metric.kind == "histogram" for tail in tails}


@pytest.mark.slow
def test_every_series_named_is_one_that_is_exported_with_the_labels_it_has():
    """DASH-05, without any server."""
    labels = {metric.name: {*metric.labels, "instance", "job", "le"} for metric in METRICS}
    known = series_names()
    for expression in (*shown(), *ruled()):
        used = {
            word for word in _WORD.findall(expression.text) if word.startswith(("content", "job_", "lease_", "pack_"))
        }
        recorded = {rule["record"] for rule in rules() if "record" in rule}
        assert used <= known | recorded, str(expression)
        assert used or "up{" in expression.text, str(expression)
        for name, matchers in _LABELS.findall(expression.text):
            own = labels.get(re.sub(r"_(bucket|count|sum)$", "", name))
            asked = {matcher.partition("=")[0].rstrip("!~ ") for matcher in matchers.split(",") if matcher}
            assert own is None or asked <= own, f"{expression}: {name}{{{matchers}}}"


def test_every_alarm_has_a_page_to_turn_to():
    for rule in rules():
        if "alert" in rule:
            file, _, place = rule["annotations"]["runbook_url"].partition("#")
            text = (PROJECT / file).read_text()
            assert f"| `{rule['alert']}` |" in text, rule["alert"]
            assert f"## {place.replace('-', ' ')}" in text.lower()
            assert rule["annotations"]["summary"]
            assert rule["labels"]["severity"] in ("info", "warning")
    named = set(re.findall(r"^\| `(Content\w+)` \|", HOWTO.read_text(), re.MULTILINE))
    assert named == {rule["alert"] for rule in rules() if "alert" in rule}


@pytest.mark.parametrize("board", DASHBOARDS, ids=lambda board: board.stem)
def test_a_dashboard_is_whole(board):
    data = json.loads(board.read_text())
    assert data["uid"].startswith("docstokg-")
    ids = [panel["id"] for panel in data["panels"]]
    assert len(set(ids)) == len(ids)
    variables = {variable["name"] for variable in data["templating"]["list"]}
    for panel in panels(board):
        assert panel["datasource"]["uid"] == "${datasource}"
        for target in panel["targets"]:
            used = set(re.findall(r"\$(\w+)", target["expr"])) - {"__rate_interval"}
            assert used <= variables, panel["title"]
    taken: set[tuple[int, int]] = set()
    for panel in data["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken, panel["title"]
        assert at["x"] + at["w"] <= 24
        taken |= cells


def test_the_panels_that_were_asked_for_are_there():
    """DASH-01, DASH-02, DASH-03, DASH-04."""
    titles = {panel["title"] for panel in panels(DEPLOY / "grafana" / "run.json")}
    assert titles >= {
        *("Cache hit ratio", "Cache hit ratio by source", "Revalidation ratio", "Success rate"),
        *("GET latency", "HEAD latency", "Retries by reason", "Bytes per second", "Outcomes per minute"),
        *("Rate-limit sleep", "Too many requests (429)", "Time to the paper", "Yield", "Rate delay p95"),
    }
    [latency] = [panel for panel in panels(DEPLOY / "grafana" / "run.json") if panel["title"] == "GET latency"]
    assert [target["legendFormat"] for target in latency["targets"]] == ["p50", "p90", "p99"]
    assert (DEPLOY / "grafana" / "resolver.json") in DASHBOARDS


# a real Prometheus


def test_promtool_finds_nothing_wrong():
    promtool = needs.program("promtool")
    for words in (("check", "rules", str(RULES)), ("check", "config", str(DEPLOY / "prometheus" / "prometheus.yml"))):
        done = subprocess.run([promtool, *words], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stdout + done.stderr


def answer(address: str, path: str, **query: str) -> Any:
    asked = f"{address}{path}?{urllib.parse.urlencode(query)}"
    with urllib.request.urlopen(asked, timeout=20) as response:
        return json.load(response)["data"]


def eventually(check: Callable[[], bool], what: str, seconds: float = 60.0) -> None:
    until = time.monotonic() + seconds
    while True:
        try:
            if check():
                return
        except OSError:
            pass
        assert time.monotonic() < until, what
        time.sleep(0.1)


def start_prometheus(root: Path, target: str) -> tuple[subprocess.Popen[bytes], str]:
    """One that scrapes `target` and evaluates our rules every half second."""
    (root / "rules.yml").write_text(RULES.read_text())
    settings = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yml").read_text())
    settings["global"] = {"scrape_interval": "500ms", "evaluation_interval": "500ms"}
    settings["scrape_configs"][0]["static_configs"] = [{"targets": [target]}]
    (root / "prometheus.yml").write_text(yaml.safe_dump(settings))
    for _ in range(3):  # another process may take the free port first
        address = f"127.0.0.1:{free_port()}"
        words = [
            *(needs.program("prometheus"), f"--config.file={root / 'prometheus.yml'}"),
            *(f"--storage.tsdb.path={root / 'tsdb'}", f"--web.listen-address={address}", "--log.level=warn"),
        ]
        with (root / "prometheus.log").open("wb") as log:
            process = subprocess.Popen(words, stdout=log, stderr=log, cwd=root)
        if is_ready(process, f"http://{address}"):
            return process, f"http://{address}"
    raise AssertionError((root / "prometheus.log").read_text())


def is_ready(process: subprocess.Popen[bytes], address: str) -> bool:
    """Whether it answers; False when it has ended."""

    def answers_or_has_ended() -> bool:
        with contextlib.suppress(OSError), urllib.request.urlopen(f"{address}/-/ready", timeout=20) as response:
            return bool(response.status == 200) and process.poll() is None
        return process.poll() is not None

    eventually(answers_or_has_ended, "prometheus does not begin")
    return process.poll() is None


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Prometheus that watched a run with two processes, faults and a warm cache."""
    needs.program("prometheus")
    root = tmp_path_factory.mktemp("watched")
    with SandboxServer(works=WORKS, seed=7, faults=Faults.none()) as calm:
        warm_up(calm, root)
    with SandboxServer(works=WORKS, seed=7, faults=QUICK) as sandbox:
        cfg = load_config(None, settings(sandbox, root / "run", root), environ={}, user_file=root / "none")
        with DownloadRun(cfg) as run:
            target = urllib.parse.urlsplit(run.metrics_address or "").netloc
            process, address = start_prometheus(root, target)
            try:
                eventually(lambda: bool(value(address, "up == 1")), (root / "prometheus.log").read_text())
                ids = sandbox.identifiers(WORKS)
                run.start()
                for share in (ids[: WORKS // 2], ids[WORKS // 2 :]):
                    run.enqueue(coerce_works(share))
                    run.wait(patience_s=2)
                    before = scrapes(address)
                    eventually(lambda seen=before: scrapes(address) >= seen + 3, "no more scrapes")  # type: ignore[misc]
                yield address
            finally:
                process.terminate()
                process.wait(20)


def settings(server: SandboxServer, root: Path, shared: Path) -> dict[str, Any]:
    return {
        **server.profile(),
        "orchestrator": {"max_workers": 4, "processes": 2, "lookahead": 4, "retry_backoff_seconds": 1,
                         "jitter_seconds": 0, "max_per_host": 1, "heartbeat_seconds": 1},
        "telemetry": {"manifest_path": str(root / "manifest.jsonl"), "metrics_port": 0},
        "storage": {"root_dir": str(shared / "files"), "min_free_bytes": 0},
        "queue": {"path": str(root / "ledger.sqlite")},
        "hishel": {"base_path": str(shared / "cache")},
    }  # fmt: skip


def warm_up(server: SandboxServer, root: Path) -> None:
    """Some answers lie in the cache when the run begins."""
    cfg = load_config(None, settings(server, root / "warm", root), environ={}, user_file=root / "none")
    one = cfg.model_copy(update={"orchestrator": cfg.orchestrator.model_copy(update={"processes": 1})})
    with DownloadRun(one) as run:
        run.process_artifacts(server.identifiers(10))


def value(address: str, expression: str) -> list[Any]:
    return list(answer(address, "/api/v1/query", query=expression)["result"])


def soon(address: str, expression: str) -> list[Any]:
    """The same when it has figures: a scrape that a busy machine missed leaves none until the next one."""
    found: list[Any] = []

    def has_figures() -> bool:
        found[:] = value(address, expression)
        return any(each["value"][1] != "NaN" for each in found)

    eventually(has_figures, f"no figures: {expression}")
    return found


def scrapes(address: str) -> float:
    [found] = value(address, "count_over_time(up[1h])")
    return float(found["value"][1])


def as_grafana_asks(text: str) -> str:
    """The expression with the variables of the dashboard filled in, over the whole of the short run."""
    filled = text.replace("$__rate_interval", "10m").replace("$instance", ".*")
    return filled.replace("$resolver", "unpaywall")


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_every_expression_of_the_dashboards_answers_with_figures_of_the_run(prometheus):
    """DASH-05 against a real Prometheus: no error anywhere, and data wherever a run must have some."""
    for expression in shown():
        may = expression.title in MAY_BE_EMPTY or expression.legend.startswith(_LEGEND_MAY_BE_EMPTY)
        ask = value if may else soon
        ask(prometheus, as_grafana_asks(expression.text))


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_every_rule_is_evaluated_without_error_and_the_recorded_figures_are_there(prometheus):
    groups = answer(prometheus, "/api/v1/rules")["groups"]
    loaded = [rule for group in groups for rule in group["rules"]]
    assert {rule["name"] for rule in loaded} == {rule.get("alert") or rule["record"] for rule in rules()}
    assert [(rule["name"], rule.get("lastError")) for rule in loaded if rule["health"] != "ok"] == []
    for expression in ruled():
        value(prometheus, expression.text)
    for rule in rules():
        if "record" in rule:
            soon(prometheus, rule["record"])


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_prometheus_knows_every_name_and_kind_as_it_stands(prometheus):
    """MET-27: nothing is renamed on the way."""
    # The modern format, in which Prometheus asks, names a counter without the ending that its series have.
    kinds = {name: about[0]["type"] for name, about in answer(prometheus, "/api/v1/metadata").items()}
    assert {metric.name: kinds.get(metric.name.removesuffix("_total")) for metric in METRICS} == {
        metric.name: metric.kind for metric in METRICS
    }
    series = set(answer(prometheus, "/api/v1/label/__name__/values"))
    ours = {name for name in series if name.startswith(("content", "job_", "lease_", "pack_")) and ":" not in name}
    assert ours <= series_names()
    assert {name for name in PROMISED_ALWAYS if name not in series} == set()
    [yielded] = soon(prometheus, "sum(content_yield_ratio)")
    assert 0.5 < float(yielded["value"][1]) <= 1.0
    [processes] = soon(prometheus, "contentdownload_processes")
    assert processes["value"][1] == "2"
