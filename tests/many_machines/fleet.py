"""Two nodes on one machine: servers they share, a web of their own to ask, and what may befall them.

Each node has its own settings, folders, staging disk and a wire to each server that can be cut. What the nodes leave
behind is read from the servers themselves, past all wires.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pytest
import redis
from tests import needs
from tests.conformance.conftest import (
    BUCKET,
    PASSWORD,
    Server,
    running_moto,
    running_nats,
    running_valkey,
    valkey_url,
)
from tests.conformance.postgres_server import NoPostgres, PostgresServer, running_postgres
from tests.many_machines.relay import Cut, Relay, Wires
from tests.politeness import complaints
from tests.waiting import eventually

from DocsToKG.ContentDownload.bootstrap import open_queue
from DocsToKG.ContentDownload.config import load_config
from DocsToKG.ContentDownload.inputs import coerce_works
from DocsToKG.ContentDownload.storage.bucket import Bucket
from DocsToKG.ContentDownload.storage.cas import cas_key
from DocsToKG.Orchestrator.ledger.base import LeasedJob, Release
from DocsToKG.Orchestrator.ledger.postgres import PostgresLedger
from DocsToKG.Sandbox.profile import SandboxServer

SERVERS = ("postgres", "valkey", "nats", "s3")
STAGING_MIB = 24
LEASE_S, BEAT_S = 6, 1
_PROGRAM = str(Path(sys.executable).parent / "contentdownload")
_BALLAST = "ballast"
# How long a word may lie before it is read and passed on, on a machine that is busy with other things.
_UNREAD_S = 1.0


@dataclass
class Node:
    """A machine: `start` it, cut it from a server, fill its disk, kill its workers."""

    name: str
    folder: Path
    wires: Mapping[str, Relay]
    processes: int
    environment: dict[str, str]
    running: list[subprocess.Popen[bytes]] = field(default_factory=list)
    has_disk: bool = False

    @property
    def settings(self) -> Path:
        return self.folder / "node.yaml"

    @property
    def staging(self) -> Path:
        return self.folder / "staging"

    def start(self) -> None:
        words = ["queue", "run", "-c", str(self.settings), "--drain", "--processes", str(self.processes)]
        with open(self.folder / "said.txt", "ab") as said:
            self.running.append(
                subprocess.Popen(
                    [_PROGRAM, *words, "--log-level", "info", "--log-file", str(self.folder / "log.jsonl")],
                    stdin=subprocess.DEVNULL, stdout=said, stderr=said, env=self.environment, cwd=self.folder,
                )
            )  # fmt: skip

    def workers(self) -> list[int]:
        """The processes that lease and work."""
        found = []
        for children in Path(f"/proc/{self.running[-1].pid}/task").glob("*/children"):
            with contextlib.suppress(OSError):
                found += [int(word) for word in children.read_text().split()]
        return sorted(found)

    def kill_a_worker(self, number: int) -> bool:
        workers = self.workers()
        if not workers or self.running[-1].poll() is not None:
            return False
        with contextlib.suppress(ProcessLookupError):
            os.kill(workers[number % len(workers)], signal.SIGKILL)
            return True
        return False

    def mount(self) -> None:
        """A small disk for staging, where we may have one."""
        self.staging.mkdir()
        words = ["mount", "-t", "tmpfs", "-o", f"size={STAGING_MIB}m", "tmpfs", str(self.staging)]
        if os.geteuid() == 0 and sys.platform == "linux":
            self.has_disk = subprocess.run(words, stderr=subprocess.DEVNULL, check=False).returncode == 0

    def unmount(self) -> None:
        if self.has_disk:
            subprocess.run(["umount", "-l", str(self.staging)], check=False)

    def fill_disk(self) -> None:
        with open(self.staging / _BALLAST, "wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(4096))

    def free_disk(self) -> None:
        (self.staging / _BALLAST).unlink()

    def said(self) -> str:
        """How it ended, what it told its user, and the last words and troubles of its log."""
        log = self.folder / "log.jsonl"
        lines = log.read_text(errors="replace").splitlines() if log.exists() else []
        troubles = [line for line in lines[:-5] if '"level":"info"' not in line.replace(" ", "")]
        lines = [*(line[:500] for line in troubles[-15:]), *lines[-5:]]
        ends = [process.poll() for process in self.running]
        return "\n".join(
            [f"{self.name}: {ends}", (self.folder / "said.txt").read_text(errors="replace")[-2000:], *lines]
        )

    def stop(self) -> None:
        for process in self.running:
            if process.poll() is None:
                for pid in self.workers():
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                process.kill()
            process.wait(20)


class Untold(NamedTuple):
    """Pauses that a host told between two moments may have been known to nobody else before `known_at`."""

    since: float
    until: float
    known_at: float

    def hides(self, found: Mapping[str, Any]) -> bool:
        return self.since <= found["told_at_s"] <= self.until and found["at_s"] < self.known_at


@dataclass
class Fleet:
    """The servers, the web and the nodes."""

    folder: Path
    sandbox: SandboxServer
    postgres: PostgresServer
    valkey: Server
    nats: Server
    s3: Server
    nodes: list[Node]
    bucket: Bucket
    _kept: LeasedJob = field(init=False)
    _untold: list[Untold] = field(default_factory=list)
    _kills: int = 0

    def begin(self, dois: list[str]) -> None:
        """Put the first works into the queue, as people do, and start the nodes. They find the queue empty at times,
        so one job is held by somebody else until `let_end`."""
        self._import(dois)
        with PostgresLedger(self.postgres.url) as ledger:
            [self._kept] = ledger.lease("somebody-else", 1, 3600.0)
        for node in self.nodes:
            node.start()
        eventually(self._all_work, "every process of every node at work", within_s=120)

    def _all_work(self) -> bool:
        """Whether every process has told the ledger that it works: a machine that finds a server away when it begins
        ends with an error, as it should, and that is no fault of these."""
        assert all(node.running[-1].poll() is None for node in self.nodes), self.said()
        with self.database() as connection:
            [(told,)] = connection.execute("SELECT count(*) FROM orchestrator.workers").fetchall()
        return int(told) >= sum(node.processes for node in self.nodes)

    def let_end(self) -> None:
        with PostgresLedger(self.postgres.url) as ledger:
            ledger.release(Release(self._kept.job_id, self._kept.fence, self._kept.lease_id))

    def enqueue(self, dois: list[str]) -> None:
        """More works, told through the broker on the way of the node that is never cut."""
        works = [line.work for line in coerce_works(dois) if line.work is not None]
        with open_queue(load_config(self.nodes[1].settings, environ={})) as queue:
            queue.bulk_import((work.work_id, work.to_dict(), None) for work in works)

    def _import(self, dois: list[str]) -> None:
        file = self.folder / "works.jsonl"
        file.write_text("\n".join(json.dumps({"doi": doi}) for doi in dois))
        node = self.nodes[0]
        done = subprocess.run(
            [_PROGRAM, "queue", "import", str(file), "-c", str(node.settings)],
            capture_output=True, text=True, timeout=120, env=node.environment, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr

    def ended(self) -> int:
        """Jobs that are over."""
        with self.database() as connection:
            sql = "SELECT count(*) FROM orchestrator.job_history WHERE event = 'finished'"
            return int(connection.execute(sql).fetchone()[0])  # type: ignore[index]

    def is_running(self) -> bool:
        return any(process.poll() is None for node in self.nodes for process in node.running)

    def wait_until_at_work(self, *, ended: int, within_s: float) -> None:
        """Return when the first node works on some jobs, or `ended` are over: the other node may take them all."""
        eventually(
            lambda: self._leased_by(self.nodes[0]) >= 2 or self.ended() >= ended or not self.is_running(),
            "the first node at work",
            within_s=within_s,
        )

    def wait_for(self, ended: int, *, within_s: float) -> None:
        """Return when so many jobs are over."""
        eventually(lambda: self.ended() >= ended or not self.is_running(), f"{ended} jobs over", within_s=within_s)

    def _leased_by(self, node: Node) -> int:
        names = [path.stem for path in node.folder.rglob("*.workers/*.lock")]
        sql = "SELECT count(*) FROM orchestrator.jobs WHERE state = 'in_progress' AND worker_id = ANY(%s)"
        with self.database() as connection:
            return int(connection.execute(sql, (names,)).fetchone()[0])  # type: ignore[index]

    def wait_for_end(self, *, within_s: float) -> list[int]:
        """The exit codes of what was started."""
        deadline = time.monotonic() + within_s
        processes = [process for node in self.nodes for process in node.running]
        for process in processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.1, deadline - time.monotonic()))
        assert not self.is_running(), f"still at work: {self.states()}\n{self.said()}"
        return [int(process.returncode) for process in processes]

    def said(self) -> str:
        return "\n".join(node.said() for node in self.nodes)

    def database(self) -> psycopg.Connection[Any]:
        return psycopg.connect(self.postgres.url, autocommit=True, connect_timeout=5)

    def states(self) -> dict[str, int]:
        with PostgresLedger(self.postgres.url) as ledger:
            return ledger.stats()

    # what may befall them

    def restart_postgres(self, *, kill: bool) -> None:
        self.postgres.stop(kill=kill)
        time.sleep(1)
        self.postgres.start()

    def flush_valkey(self) -> None:
        with redis.Redis.from_url(valkey_url(self.valkey)) as client:
            client.flushall()

    def restart_valkey(self) -> None:
        self.valkey.stop()
        time.sleep(0.5)
        self.valkey.start()

    def restart_nats(self) -> None:
        self.nats.stop()
        time.sleep(1)
        self.nats.start()

    def cut(self, server: str, how: Cut, seconds: float) -> None:
        """Between the first node and one server."""
        wire, began = self.nodes[0].wires[server], time.monotonic()
        wire.cut(how)
        time.sleep(seconds)
        wire.mend()
        if server == "valkey":
            now = time.monotonic()
            self._untold.append(Untold(began - _UNREAD_S, now, known_at=now + _UNREAD_S))

    def fill_staging(self, seconds: float) -> None:
        for node in self.nodes:
            node.fill_disk()
        time.sleep(seconds)
        for node in self.nodes:
            node.free_disk()

    def kill_worker(self, number: int) -> None:
        """Its own node starts another."""
        node = self.nodes[number % len(self.nodes)]
        eventually(lambda: node.kill_a_worker(number) or node.running[-1].poll() is not None, "a worker to kill")
        now = time.monotonic()
        self._untold.append(Untold(now - _UNREAD_S, now + 0.05, known_at=math.inf))
        self._kills += 1

    # what is left

    def violations(self) -> list[dict[str, Any]]:
        """Impolite requests, as the web counted them; not those that came while the word that asks for a pause lay
        unread at the client (a machine that is busy with other things reads late), or was known only to a process that
        was killed, or to a node that could not pass it on: nobody who asked could know of it."""
        records = [node.folder / "run" / "manifest.sqlite" for node in self.nodes]
        found = complaints(self.sandbox.violations(), records)
        return [one for one in found if one["kind"] != "retry-after" or not any(u.hides(one) for u in self._untold)]

    def jobs(self) -> dict[str, dict[str, Any]]:
        """By identifier in small letters: the state of each job, its file, and how often it ended."""
        sql = """
            SELECT j.artifact_id, j.state, j.result_json, j.last_error,
                   (SELECT count(*) FROM orchestrator.job_history h WHERE h.job_id = j.id AND h.event = 'finished')
              FROM orchestrator.jobs j
        """
        with self.database() as connection:
            rows = connection.execute(sql).fetchall()
        return {
            str(name).partition(":")[2].lower(): {
                "doc_id": name, "state": state, "ends": ends, "error": error, **_result(result),
            }
            for name, state, result, error, ends in rows
        }  # fmt: skip

    def taken_up_again(self) -> set[str]:
        """The works that were leased more than once: who had them first was cut off or killed, or gave them back."""
        sql = """
            SELECT j.artifact_id FROM orchestrator.job_history h JOIN orchestrator.jobs j ON j.id = h.job_id
             WHERE h.event = 'leased' GROUP BY j.artifact_id HAVING count(*) > 1
        """
        with self.database() as connection:
            return {name for (name,) in connection.execute(sql).fetchall()}

    def story(self, doi: str) -> list[str]:
        """All that the ledger and the records of the nodes know of a work."""
        told = self._history(doi)
        for node in self.nodes:
            lines = (node.folder / "run" / "manifest.jsonl").read_text().splitlines()
            told += [f"{node.name} {line[:600]}" for line in lines if doi.lower() in line.lower()]
        return [doi, *told]

    def _history(self, doi: str) -> list[str]:
        with self.database() as connection:
            sql = """
                SELECT h.at, h.event, h.fence, h.actor, h.reason, left(h.detail_json, 200)
                  FROM orchestrator.job_history h
                  JOIN orchestrator.jobs j ON j.id = h.job_id WHERE lower(j.artifact_id) = %s ORDER BY h.seq
            """
            return [str(row) for row in connection.execute(sql, (f"doi:{doi.lower()}",)).fetchall()]

    def catalog(self) -> dict[str, set[str]]:
        """By work: the files that the record which the nodes share names."""
        found: dict[str, set[str]] = {}
        with self.database() as connection:
            rows = connection.execute("SELECT doc_id, sha256, path FROM docstokg_record.downloads").fetchall()
        for doc_id, digest, path in rows:
            assert path == cas_key(digest)
            found.setdefault(doc_id, set()).add(digest)
        return found

    def objects(self) -> dict[str, str]:
        """What the bucket holds: each key with the digest of what it gives back."""
        return {found.key: str(self.bucket.digest(found.key)) for found in self.bucket.list("cas")}

    def uploads(self) -> list[Any]:
        import boto3  # type: ignore[import-untyped]

        client = boto3.client(
            "s3", endpoint_url=f"http://127.0.0.1:{self.s3.port}", region_name="us-east-1",
            aws_access_key_id="testing", aws_secret_access_key=PASSWORD,
        )  # fmt: skip
        found = client.list_multipart_uploads(Bucket=BUCKET).get("Uploads", [])
        client.close()
        return list(found)

    def taken_slots(self) -> dict[str, Any]:
        """Slots that somebody still has, and nodes that still say they are there. One that was killed leaves its slots
        until somebody wants them, and is known to be gone by then."""
        found: dict[str, Any] = {}
        with redis.Redis.from_url(valkey_url(self.valkey), decode_responses=True) as client:
            for name in client.scan_iter(match="{docstokg:limits}*", count=1000):
                if ":alive:" in name:
                    found[name] = "alive"
                elif ":breaker:" not in name and (":host:" in name or ":resolver:" in name):
                    record = json.loads(str(client.get(name)).partition(" ")[2])
                    if record[0]:
                        found[name] = record[0]
        owners = {owner for held in found.values() if held != "alive" for owner in held}
        are_gone = not any(name.endswith(f":alive:{owner}") for name in found for owner in owners)
        if are_gone and len(owners) <= self._kills:
            return {name: held for name, held in found.items() if held == "alive"}
        return found

    def left_files(self) -> list[str]:
        """Temporary files, staged ones, and signs of life of workers that are gone."""
        found = [path for node in self.nodes for path in node.staging.rglob("*") if path.is_file()]
        found += [path for node in self.nodes for path in node.folder.rglob("*.workers/*")]
        found += [path for node in self.nodes for path in node.folder.rglob("part-*")]
        return sorted(str(path) for path in found)

    def leases(self) -> int:
        sql = "SELECT count(*) FROM orchestrator.jobs WHERE state = 'in_progress' OR lease_until IS NOT NULL"
        with self.database() as connection:
            return int(connection.execute(sql).fetchone()[0])  # type: ignore[index]

    def has_whole_history(self) -> bool:
        """Whether no link of its chains is missing or changed."""
        with PostgresLedger(self.postgres.url) as ledger:
            return ledger.verify_history()

    def requests(self) -> int:
        """How many the web has seen."""
        return int(self.sandbox.counters()["requests"])

    def errors(self) -> Counter[str]:
        return Counter(str(job["error"])[:100] for job in self.jobs().values() if job["state"] == "error")


def _result(text: Any) -> dict[str, Any]:
    found = text if isinstance(text, dict) else json.loads(text or "{}")
    return {"sha256": found.get("sha256"), "path": found.get("path"), "cause": found.get("cause")}


@contextlib.contextmanager
def running_fleet(
    folder: Path, sandbox: SandboxServer, *, processes: int = 2, **settings: Mapping[str, Any]
) -> Iterator[Fleet]:
    with contextlib.ExitStack() as stack:
        try:
            postgres = stack.enter_context(running_postgres())
        except NoPostgres as error:
            needs.lacks(str(error))
        valkey = stack.enter_context(running_valkey())
        nats = stack.enter_context(running_nats())
        s3 = stack.enter_context(running_moto())
        wires = stack.enter_context(Wires())
        ports = {"postgres": postgres.port, "valkey": valkey.port, "nats": nats.port, "s3": s3.port}
        prefix = f"t-{uuid.uuid4().hex[:12]}"
        nodes = []
        for name in ("a", "b"):
            node = _node(
                name, folder / name, {server: wires.lead_to(port) for server, port in ports.items()}, processes
            )
            _write_settings(node, sandbox, prefix, settings)
            node.mount()
            stack.callback(node.unmount)
            stack.callback(node.stop)
            nodes.append(node)
        bucket = _bucket(s3, prefix)
        yield Fleet(folder, sandbox, postgres, valkey, nats, s3, nodes, bucket)


def _bucket(s3: Server, prefix: str) -> Bucket:
    """Past all wires; its settings are read when it is made."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in _keys(s3.port).items():
            patch.setenv(name, value)
        return Bucket(BUCKET, prefix=prefix)


def _keys(port: int) -> dict[str, str]:
    return {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": PASSWORD,
        "AWS_REGION": "us-east-1",
    }


def _node(name: str, folder: Path, wires: dict[str, Relay], processes: int) -> Node:
    folder.mkdir()
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("DTKG_", "DOCSTOKG_", "AWS_"))}
    home = {"HOME": str(folder / "home"), "XDG_STATE_HOME": str(folder / "xdg"), "XDG_CONFIG_HOME": str(folder / "xdg")}
    return Node(name, folder, wires, processes, {**kept, **home, **_keys(wires["s3"].port)})


def _write_settings(node: Node, sandbox: SandboxServer, prefix: str, more: Mapping[str, Mapping[str, Any]]) -> None:
    ports = {server: wire.port for server, wire in node.wires.items()}
    database = f"postgresql://postgres@127.0.0.1:{ports['postgres']}/postgres"
    state = node.folder / "state"
    settings: dict[str, Any] = {
        **sandbox.profile(),
        "robots": {"unreachable_seconds": 1},
        "orchestrator": {
            "max_workers": 8, "retry_backoff_seconds": 1, "jitter_seconds": 0, "max_job_attempts": 5,
            "lease_ttl_seconds": LEASE_S, "heartbeat_seconds": BEAT_S,
        },
        "telemetry": {"manifest_path": str(node.folder / "run" / "manifest.jsonl")},
        "storage": {
            "backend": "s3", "s3_bucket": BUCKET, "s3_prefix": prefix, "root_dir": str(node.staging),
            "min_free_bytes": 0, "staging_bytes": 16 << 20,
        },
        "queue": {
            "backend": "postgres", "connection_string": database, "path": str(state / "ledger.sqlite"),
            "node_id": f"node-{node.name}",
            "signal": "nats", "signal_url": f"nats://docstokg:{PASSWORD}@127.0.0.1:{ports['nats']}",
        },
        "rate_limit": {"backend": "redis", "redis_url": f"redis://:{PASSWORD}@127.0.0.1:{ports['valkey']}/0"},
        "hishel": {"base_path": str(state / "cache")},
        "catalog": {"backend": "postgres", "connection_string": database},
    }  # fmt: skip
    for section, values in more.items():
        settings[section] = {**settings.get(section, {}), **values}
    node.settings.write_text(json.dumps(settings, indent=1))
