"""Whose turn is it? Chooses the jobs of a lease so that no host fills it while others wait.

Among due jobs of one priority, those with a known host go round by host, those without by age, and
each kind gets half of the places that both want. Half of the hosts' places are shared out equally, the others go to
those where most waits: they are done last, and must not begin late. Reads no more than the lease can hold, about one
index entry for each host it visits, and once in a second up to a thousand to see how much waits there. The place in
the round is kept in memory: losing it only starts the round anew.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any

from DocsToKG.Orchestrator.ledger.drivers.sqlite import type_indexes
from DocsToKG.Orchestrator.ledger.transaction import Transaction

_MOST_COUNTED = 1000
_COUNTED_MS = 1000  # how long a count is good for


class HostTurns:
    """One process's place in the round over hosts."""

    def __init__(self) -> None:
        self._after = ""
        self._spare_to_hosts = False
        self._waiting: dict[str, int] = {}  # due jobs by host, less those that were taken since
        self._counted = (-_COUNTED_MS, 0)  # when, and for which priority

    def choose(self, tx: Transaction, limit: int, job_type: str | None, lease: dict[str, Any]) -> list[tuple[Any, ...]]:
        """Up to `limit` due jobs as rows of a leased job, highest priority first; `lease` has what the grant adds."""
        asked = _Asked(tx, job_type)
        if not asked.rows("any_due_by_host"):
            return asked.rows("due_by_age", {**lease, "limit": limit})
        ids: list[int] = []
        level = asked.level(None)
        while level is not None and len(ids) < limit:
            ids += self._of_level(asked, limit - len(ids), level)
            level = asked.level(level)
        rows = {row[0]: row for row in tx.rows("due_among", {**lease, "job_ids": ids})}
        return [rows[job_id] for job_id in ids]

    def _of_level(self, asked: _Asked, room: int, priority: int) -> list[int]:
        values = {"priority": priority}
        by_age = [row[0] for row in asked.rows("due_ids_by_age", {**values, "limit": room})]
        share = room // 2 + (room % 2 if self._spare_to_hosts else 0)
        by_host = self._round(asked, room - min(len(by_age), room - share), values)
        self._spare_to_hosts ^= bool(room % 2)
        return _alternate(by_host, by_age[: room - len(by_host)])

    def _round(self, asked: _Asked, room: int, values: dict[str, Any]) -> list[int]:
        """Up to `room` jobs of the hosts from the one after the last that was served."""
        hosts = self._hosts(asked, room, values)
        if not hosts:
            return []
        queues: dict[str, list[int]] = {host: [] for host in hosts}
        waiting = _read(asked, queues, self._shares(asked, hosts, room, values), values)
        while waiting and (missing := room - sum(map(len, queues.values()))) > 0:
            waiting = _read(asked, queues, dict.fromkeys(waiting, -(-missing // len(waiting))), values)
        self._after = hosts[-1]
        return _spread(list(queues.values()))[:room]

    def _shares(self, asked: _Asked, hosts: Sequence[str], room: int, values: dict[str, Any]) -> dict[str, int]:
        """Half of the places in equal parts, at least one each; the others to whom most waits."""
        equal = max(1, room // 2 // len(hosts))
        spare = room - equal * len(hosts)
        if len(hosts) == 1 or spare <= 0:
            return dict.fromkeys(hosts, -(-room // len(hosts)))
        waiting = self._count(asked, hosts, values)
        weights = {host: count * count for host, count in waiting.items()}
        per_place = max(1, sum(weights.values())) / spare
        shares = {host: equal + int(weight / per_place) for host, weight in weights.items()}
        # What whole places leave over goes one by one to whoever lacks most of the next.
        left = room - sum(shares.values())
        for host in sorted(weights, key=lambda host: weights[host] / per_place % 1, reverse=True)[:left]:
            shares[host] += 1
        for host, share in shares.items():
            self._waiting[host] = max(0, self._waiting[host] - share)
        return shares

    def _count(self, asked: _Asked, hosts: Sequence[str], values: dict[str, Any]) -> dict[str, int]:
        at, priority = self._counted
        is_old = not 0 <= asked.now_ms - at < _COUNTED_MS or priority != values["priority"]
        if is_old or not all(host in self._waiting for host in hosts):
            counted = asked.rows("due_at_hosts", {**values, "hosts": list(hosts), "most": _MOST_COUNTED})
            self._waiting, self._counted = dict(counted), (asked.now_ms, values["priority"])
        return {host: self._waiting[host] for host in hosts}

    def _hosts(self, asked: _Asked, most: int, values: dict[str, Any]) -> list[str]:
        if most < 1:
            return []
        span = {"priority": values["priority"], "after": self._after, "upto": None, "limit": most}
        hosts = [row[0] for row in asked.rows("due_hosts", span)]
        if len(hosts) < most and self._after:
            rest = {**span, "after": "", "upto": self._after, "limit": most - len(hosts)}
            hosts += [row[0] for row in asked.rows("due_hosts", rest)]
        return hosts


class _Asked:
    """The statements of one choice, for jobs of any type or of one."""

    def __init__(self, tx: Transaction, job_type: str | None) -> None:
        self._tx = tx
        self._job_type = job_type
        self._form = type_indexes.form(tx.execute, job_type)
        self.now_ms = tx.now_ms

    def rows(self, name: str, values: dict[str, Any] | None = None) -> list[tuple[Any, ...]]:
        return self._tx.rows(f"{name}{self._form}", {**(values or {}), "job_type": self._job_type})

    def level(self, below: int | None) -> int | None:
        """The highest priority that has a due job, below one already looked at."""
        [(priority,)] = self.rows("due_level", {"below": below})
        return None if priority is None else int(priority)


def _read(asked: _Asked, queues: dict[str, list[int]], shares: Mapping[str, int], values: dict[str, Any]) -> list[str]:
    """Read so many more of each host's due jobs; the hosts that may have still more."""
    more: list[str] = []
    for share in set(shares.values()):
        after = {host: queues[host][-1] if queues[host] else 0 for host in shares if shares[host] == share}
        for host, ids in asked.rows("due_of_hosts", {**values, "after": json.dumps(after), "limit": share}):
            found = sorted(map(int, ids.split(","))) if ids else []
            queues[host] += found
            if len(found) == share:
                more.append(host)
    return more


def _spread(queues: Sequence[Sequence[int]]) -> list[int]:
    """All of them in one row, each queue in its order and evenly over the whole of it."""
    places = [((n + 0.5) / len(queue), at, job_id) for at, queue in enumerate(queues) for n, job_id in enumerate(queue)]
    return [job_id for _, _, job_id in sorted(places)]


def _alternate(first: Sequence[int], second: Sequence[int]) -> list[int]:
    return [job_id for pair in zip_longest(first, second) for job_id in pair if job_id is not None]
