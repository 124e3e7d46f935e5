// Who works: when each was last seen, what it holds, and what it says of itself.

import { h } from "../dom.js";
import { count, lasting, shortId, since } from "../format.js";
import { badge, heading, mono, panel, quiet, table, time } from "../parts.js";
import { toWith } from "../router.js";

const STALE_S = 90;

export function workers(page) {
  const state = { workers: null, next: null };
  const draw = () => content(state);
  const load = async () => {
    try {
      const found = await page.get("/workers", { page_size: 200 });
      Object.assign(state, { workers: found.workers, next: found.next_page_token });
      page.renew(draw);
    } catch (error) { if (!state.workers) page.fail(error, load); }
  };
  page.follow("/streams/dashboard", page.gently(1500, load));
  page.every(5, load);
  load();
}

function content(state) {
  const alive = state.workers.filter(isAlive), leases = state.workers.reduce((sum, worker) => sum + worker.leases, 0);
  return [
    heading("Workers", `${alive.length} of ${state.workers.length} seen in the last ${STALE_S} seconds; ${count(leases)} jobs in hand.`),
    panel("Workers", { note: state.next ? "the first 200 by name" : "by name" }, list(state)),
  ];
}
const isAlive = (worker) => since(worker.lastSeenAt) < STALE_S;

function list(state) {
  return table("Workers", [
    { head: "Worker", class: "w", cell: (worker) => h("a", { href: toWith(["jobs"], { search: `worker:"${worker.workerId}"` }) }, mono(shortId(worker.workerId), worker.workerId)) },
    { head: "State", cell: (worker) => (isAlive(worker) ? badge("good", "alive") : badge("bad", worker.leases ? "silent" : "gone")) },
    { head: "Kind", cell: (worker) => worker.kind ?? quiet("–") },
    { head: "Node", cell: (worker) => worker.node ?? quiet("–") },
    { head: "Version", cell: (worker) => worker.version ?? quiet("–") },
    { head: "Jobs", class: "n", cell: (worker) => count(worker.leases) },
    { head: "Says", class: "w", cell: (worker) => says(worker) },
    { head: "Up for", class: "n", cell: (worker) => lasting(since(worker.startedAt)) },
    { head: "Last seen", class: "n", cell: (worker) => time(worker.lastSeenAt) },
  ], [...state.workers].sort((one, other) => Number(isAlive(other)) - Number(isAlive(one))), {
    key: (worker) => worker.workerId, empty: "No worker has reported. Start one with: contentdownload queue run, or content pull.",
  });
}

function says(worker) {
  const words = Object.entries(worker.info ?? {}).filter(([, value]) => value !== null && typeof value !== "object").map(([name, value]) => `${name} ${value}`);
  return words.length ? quiet(words.join(" · ")) : quiet("–");
}
