"""All measurements, one after another; the figures go to a folder as JSON. `./dev bench` calls this."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from bench import hosts, ledger


def main() -> int:
    words = argparse.ArgumentParser(prog="bench", description=__doc__)
    words.add_argument("--rows", default="10000,100000", help="rows on the ledger beside the measured jobs")
    words.add_argument("--peers", help="python of an environment with the queues to compare with")
    words.add_argument("--out", type=Path, default=Path(".cache/bench"), help="folder for the figures")
    given = words.parse_args()
    peers = [f"--peers={given.peers}"] if given.peers else []
    code = ledger.main([f"--rows={given.rows}", f"--out={given.out / 'ledger.json'}", *peers])
    return code or hosts.main([f"--out={given.out / 'hosts.json'}", "--runs=3"])


if __name__ == "__main__":
    sys.exit(main())
