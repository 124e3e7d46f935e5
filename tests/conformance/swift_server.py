"""A real S3 server of one folder and four processes: OpenStack Swift with its S3 interface.

Run as a program: `python swift_server.py FOLDER`. Prints the address with key, secret and bucket when it serves, and
ends with its children when its standard input does. The folder must be on a disk with extended attributes.
"""

from __future__ import annotations

import contextlib
import getpass
import socket
import subprocess
import sys
import time
from pathlib import Path

BUCKET = "docstokg-test"
STORES = ("account", "container", "object")
FILTERS = (
    "catch_errors gatekeeper healthcheck listing_formats bulk s3api tempauth copy slo dlo versioned_writes symlink"
)


def main(folder: Path) -> int:
    names = (*STORES, "proxy")
    ports = dict(zip(names, free_ports(len(names)), strict=True))
    write_rings(folder, ports)
    write_settings(folder, ports)
    programs = Path(sys.executable).parent
    servers = [
        subprocess.Popen(
            [programs / f"swift-{name}-server", folder / f"{name}.conf"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for name in ports
    ]
    try:
        for port in ports.values():
            wait_for(port)
        make_bucket(ports["proxy"])
        print(f"http://test%3Atester:testing-secret@127.0.0.1:{ports['proxy']}/{BUCKET}", flush=True)
        sys.stdin.read()
    finally:
        for server in servers:
            server.kill()
        for server in servers:
            server.wait()
    return 0


def write_rings(folder: Path, ports: dict[str, int]) -> None:
    from swift.common.ring import RingBuilder

    (folder / "disks" / "one").mkdir(parents=True)
    for name in STORES:
        place = {"ip": "127.0.0.1", "port": ports[name], "replication_ip": "127.0.0.1", "replication_port": ports[name]}
        builder = RingBuilder(4, 1, 0)
        builder.add_dev({"region": 1, "zone": 1, "device": "one", "weight": 1.0, "meta": "", **place})
        builder.rebalance()
        builder.get_ring().save(str(folder / f"{name}.ring.gz"))


def write_settings(folder: Path, ports: dict[str, int]) -> None:
    (folder / "swift.conf").write_text(
        "[swift-hash]\nswift_hash_path_suffix = a\nswift_hash_path_prefix = b\n"
        "[storage-policy:0]\nname = one\ndefault = yes\n"
    )
    for name, port in ports.items():
        text = (
            f"[DEFAULT]\nbind_ip = 127.0.0.1\nbind_port = {port}\nworkers = 0\nmount_check = false\n"
            f"devices = {folder}/disks\nswift_dir = {folder}\nuser = {getpass.getuser()}\nlog_level = ERROR\n"
        )
        text += proxy_settings() if name == "proxy" else store_settings(name)
        (folder / f"{name}.conf").write_text(text)


def store_settings(name: str) -> str:
    return f"[pipeline:main]\npipeline = {name}-server\n[app:{name}-server]\nuse = egg:swift#{name}\n"


def proxy_settings() -> str:
    more = {"s3api": "location = us-east-1\n", "tempauth": "user_test_tester = testing-secret .admin\n"}
    filters = "".join(f"[filter:{name}]\nuse = egg:swift#{name}\n{more.get(name, '')}" for name in FILTERS.split())
    return (
        f"[pipeline:main]\npipeline = {FILTERS} proxy-server\n"
        f"[app:proxy-server]\nuse = egg:swift#proxy\naccount_autocreate = true\n{filters}"
    )


def make_bucket(port: int) -> None:
    import boto3

    keys = {"aws_access_key_id": "test:tester", "aws_secret_access_key": "testing-secret"}
    client = boto3.client("s3", endpoint_url=f"http://127.0.0.1:{port}", region_name="us-east-1", **keys)
    client.create_bucket(Bucket=BUCKET)
    client.close()


def free_ports(count: int) -> list[int]:
    """Held until all are chosen, so that they differ."""
    with contextlib.ExitStack() as stack:
        listeners = [stack.enter_context(socket.socket()) for _ in range(count)]
        for listener in listeners:
            listener.bind(("127.0.0.1", 0))
        return [int(listener.getsockname()[1]) for listener in listeners]


def wait_for(port: int) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
