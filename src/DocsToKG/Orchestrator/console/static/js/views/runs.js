// Pack-runs: a list of them; and one with its log as it grows and what it has published.

import { h } from "../dom.js";
import { clock, lasting, since, size } from "../format.js";
import { badge, copyButton, facts, heading, mono, pager, panel, quiet, table, time } from "../parts.js";
import { to, toWith } from "../router.js";

const KEPT = 2000;

export function runs(page) {
  const state = { runs: null, next: null, token: page.query.get("page") };
  const draw = () => list(page, state);
  const load = async () => {
    try {
      const found = await page.get("/pack-runs", { page_size: 50, page_token: state.token });
      Object.assign(state, { runs: found.packRuns, next: found.next_page_token });
      page.renew(draw);
    } catch (error) { if (!state.runs) page.fail(error, load); }
  };
  page.follow("/streams/runs", page.gently(500, load));
  load();
}

function list(page, state) {
  return [
    heading("Pack-runs", "Longer pieces of work that keep a log and publish what they made."),
    panel("Pack-runs", { note: "newest first" },
      table("Pack-runs", [
        { head: "Run", class: "w", cell: (one) => h("a", { href: to("run", one.packRunId) }, mono(one.packRunId)) },
        { head: "State", cell: (one) => badge(one.state === "running" ? "leased" : one.state, one.state.replace("_", " ")) },
        { head: "Project", cell: (one) => one.project ?? quiet("–") },
        { head: "Channel", cell: (one) => one.channel ?? quiet("–") },
        { head: "Job", class: "n", cell: (one) => (one.jobId ? h("a", { href: to("job", one.jobId) }, String(one.jobId)) : quiet("–")) },
        { head: "Heartbeat", class: "n", cell: heartbeat },
        { head: "Registered", class: "n", cell: (one) => time(one.createdAt) },
      ], state.runs, { key: (one) => one.packRunId, empty: "No pack-run has been registered." }),
      pager({ first: Boolean(state.token), next: Boolean(state.next), onFirst: () => page.go(to("runs")), onNext: () => page.go(toWith(["runs"], { page: state.next })) })),
  ];
}

function heartbeat(one) {
  if (!one.lastHeartbeatAt) return quiet("–");
  const late = !one.endedAt && since(one.lastHeartbeatAt) > one.heartbeatSeconds * 2;
  return late ? h("span.bad", null, time(one.lastHeartbeatAt)) : time(one.lastHeartbeatAt);
}

export function run(page) {
  const id = page.parts[0], path = `/pack-runs/${encodeURIComponent(id)}`;
  const state = { run: null, artifacts: [], lines: [], cut: 0, ended: false, following: false };
  const draw = () => one(state);
  const load = async () => {
    try {
      const [found, artifacts] = await Promise.all([page.get(path), page.get(`${path}/artifacts`)]);
      Object.assign(state, { run: found, artifacts: artifacts.artifacts });
      page.setTitle(`Pack-run ${id}`);
      page.renew(draw);
      follow();
    } catch (error) { if (!state.run) page.fail(error, load); }
  };
  const later = page.gently(200, () => page.renew(draw));
  const follow = () => {
    if (state.following) return;
    state.following = true;
    page.follow(`${path}/logs/follow`, ({ event, data }) => {
      if (event === "pack_run.log" && data.seq > (state.lines.at(-1)?.seq ?? 0)) state.lines.push(data);
      if (event === "pack_run.end") state.ended = true;
      if (state.lines.length > KEPT) state.cut += state.lines.splice(0, state.lines.length - KEPT).length;
      if (state.run) later();
    });
  };
  page.follow("/streams/runs", page.gently(500, load));
  load();
}

function one(state) {
  const { run: found } = state;
  return [
    heading(["Pack-run ", badge(found.state === "running" ? "leased" : found.state, found.state.replace("_", " "))], found.packRunId),
    h("div.grid", { "data-key": "grid" },
      panel("Log", { note: state.cut ? `the last ${KEPT} lines; ${state.cut} earlier ones are not shown` : state.ended ? "to its end" : "as it grows", class: "wide", side: copyButton(() => state.lines.map((line) => line.line).join("\n"), "Copy the log") }, log(state)),
      panel("Facts", { note: null }, facts([
        ["Project", found.project], ["Channel", found.channel], ["Job", found.jobId ? h("a", { href: to("job", found.jobId) }, String(found.jobId)) : null], ["Heartbeat every", lasting(found.heartbeatSeconds)], ["Last heartbeat", heartbeat(found)],
        ["Registered", time(found.createdAt, { relative: false })], ["Ended", found.endedAt ? time(found.endedAt, { relative: false }) : null], ["Correlation", found.correlationId ? mono(found.correlationId) : null],
      ])),
      panel("Artifacts", { note: "with their digests", class: "full" }, table("Artifacts", [
        { head: "Name", class: "w", cell: (item) => item.name }, { head: "Where", class: "w", cell: (item) => [mono(item.uri), " ", copyButton(item.uri)] }, { head: "Digest", class: "w", cell: (item) => mono(item.digest) },
        { head: "Kind", cell: (item) => item.mime ?? quiet("–") }, { head: "Size", class: "n", cell: (item) => size(item.size) }, { head: "When", class: "n", cell: (item) => time(item.at) },
      ], state.artifacts, { key: (item) => item.name, empty: "Nothing is published yet." }))),
  ];
}

function log(state) {
  if (!state.lines.length) return h("p.empty", null, state.ended ? "It wrote no line." : "No line yet.");
  return h("div.code.log", { tabindex: "0", role: "log", "aria-label": "Log" }, state.lines.map((line) => h("div", { "data-key": line.seq, class: line.stream === "stderr" ? "stderr" : null }, quiet(`${clock(line.at)} `), line.line)));
}
