// How it goes: what there is, how fast it moves, what fails, what is held back.

import { actionButton } from "../actions.js";
import { bars, columns, levels, spark } from "../charts.js";
import { h } from "../dom.js";
import { brief, count, lasting, percent, statusWord, STATUSES } from "../format.js";
import { badge, breakerBadge, heading, panel, quiet, table, time, until } from "../parts.js";
import { to, toWith } from "../router.js";
import { firstRun } from "./welcome.js";

export function overview(page) {
  const state = { figures: null, maintenance: null, incidents: [], failed: [] };
  const draw = () => content(state, load);
  const load = async () => {
    try {
      const [figures, maintenance, incidents, failed] = await Promise.all([
        page.get("/dashboard/metrics"), page.get("/maintenance"), page.get("/incidents", { page_size: 8 }), page.get("/jobs", { status: ["failed", "timed_out"], page_size: 6 }),
      ]);
      Object.assign(state, { figures, maintenance, incidents: incidents.incidents.filter((one) => one.state !== "resolved"), failed: failed.jobs });
      page.renew(draw);
    } catch (error) { if (!state.figures) page.fail(error, load); }
  };
  const soon = page.gently(4000, load);
  page.follow("/streams/dashboard", ({ event, data }) => {
    if (event === "back") { load(); return; }
    if (event !== "dashboard.metrics") return;
    const first = state.figures === null;
    const moved = first || state.figures.counts.failed !== data.counts.failed || state.figures.openIncidents !== data.openIncidents || state.figures.paused !== data.paused;
    state.figures = data;
    page.renew(draw);
    if (moved && !first) soon();
  });
  load();
}

function content(state, load) {
  const { figures } = state;
  const all = Object.values(figures.counts).reduce((sum, n) => sum + n, 0);
  return [
    heading("Overview", null, switches(state, load)),
    banners(state, load),
    h("div.tiles", { "data-key": "tiles" }, STATUSES.map((status) => tile(status, figures))),
    all ? null : firstRun(),
    h("div.strip", { "data-key": "strip" }, speed(figures)),
    h("div.grid", { "data-key": "grid" },
      panel("Throughput", { note: "the last hour, by the minute", class: "wide" }, throughput(figures)),
      panel("Why jobs fail", { note: "the last hour" }, errors(figures)),
      panel("Latest failures", { note: "newest first", class: "wide" }, failures(state)),
      h("div.stack", { "data-key": "aside" },
        panel("Needs a look", { note: "breakers and incidents" }, troubles(state)),
        panel("Rate limits", { note: "by job type" }, limits(figures))),
      panel("By job type", { note: "now", class: "full" }, queues(figures))),
  ];
}

function tile(status, figures) {
  const n = figures.counts[status];
  return h("a.tile", { href: toWith(["jobs"], { status }), class: `is-${status}${n ? "" : " none"}`, "data-key": status },
    h("b", { "data-count": status }, brief(n)), h("span", null, statusWord(status)));
}

function speed(figures) {
  const { endsPerMinute: rate, backlogSeconds: eta, throughput: hour } = figures;
  const left = figures.counts.queued + figures.counts.pending + figures.counts.leased;
  const good = hour.reduce((sum, one) => sum + one.succeeded, 0), bad = hour.reduce((sum, one) => sum + one.failed, 0);
  return [
    fact("Pace", `${rate < 10 ? rate.toFixed(1) : count(rate)} / min`, "jobs that end", spark("Jobs ended by the minute", hour.map((one) => one.succeeded + one.failed))),
    fact("Failure share", good + bad ? percent(bad / (good + bad)) : "–", "the last hour", spark("Failures by the minute", hour.map((one) => one.failed), "bad")),
    fact("Backlog", count(left), !left ? "nothing waits" : eta === null ? "not moving now" : `done in about ${lasting(eta)}`),
    fact("Oldest wait", lasting(figures.oldestWaitSeconds), figures.oldestWaitSeconds === null ? "nothing could run and does not" : "could have run, and has not"),
  ];
}
const fact = (name, value, words, chart) => h("div.fact", { "data-key": name }, h("span.quiet", null, name), h("b", null, value), h("small.quiet", null, words), chart ?? null);

function throughput(figures) {
  const minutes = figures.throughput;
  return columns("Jobs in the last hour", minutes.map((one) => one.at), [
    { name: "good", word: "succeeded", values: minutes.map((one) => one.succeeded) },
    { name: "bad", word: "failed", values: minutes.map((one) => one.failed) },
    { name: "mild", word: "tried again", values: minutes.map((one) => one.retried) },
    { name: "still", word: "canceled", values: minutes.map((one) => one.canceled) },
  ]);
}

function errors(figures) {
  if (!figures.errors.length) return h("p.empty", null, "No job failed in the last hour.");
  return bars("Failures by reason", figures.errors.slice(0, 10).map((one) => ({ word: one.reason, value: one.count, href: toWith(["jobs"], { status: "failed", search: `"${one.reason.replaceAll('"', "")}"` }) })));
}

function limits(figures) {
  const held = figures.held.map((lane) => h("li", { "data-key": `h${lane.jobType}` }, h("strong", null, lane.jobType), " held back by ", lane.by ?? "a rule", lane.until ? [", ", until(lane.until)] : null));
  const lanes = figures.rateLimits.filter((lane) => lane.cap !== null);
  return [
    held.length ? h("ul.plain.bad", null, held) : null,
    lanes.length ? levels("Rate limits", lanes.map((lane) => ({
      word: lane.jobType === "*" ? "all types together" : lane.jobType,
      parts: [
        { word: "may start", value: Math.floor(lane.tokens), cap: lane.cap, unit: `, ${brief(lane.perHour)} / h`, name: (share) => (share <= 0 ? "bad" : share < 0.2 ? "mild" : "good") },
        { word: "running", value: lane.active, cap: lane.maxActive, name: (share) => (share >= 1 ? "bad" : share > 0.8 ? "mild" : "one") },
      ],
    }))) : null,
    figures.throttles ? h("p", null, h("a", { href: to("sources") }, `${figures.throttles} throttle${figures.throttles === 1 ? "" : "s"} in force`)) : null,
    !held.length && !lanes.length && !figures.throttles ? h("p.empty", null, "Nothing limits this tenant but its workers. ", h("a", { href: to("quotas") }, "Quotas")) : null,
  ];
}

function queues(figures) {
  const rows = Object.entries(figures.queues).map(([name, counts]) => ({ name, ...counts }));
  return table("Jobs by type", [
    { head: "Job type", cell: (row) => h("a", { href: toWith(["jobs"], { search: `type:${row.name}` }) }, row.name) },
    ...STATUSES.map((status) => ({ head: statusWord(status), class: rows.some((row) => row[status]) ? "n" : "n spare", cell: (row) => (row[status] ? count(row[status]) : quiet("0")) })),
  ], rows, { key: (row) => row.name, empty: "No jobs yet." });
}

function troubles(state) {
  const { figures } = state;
  if (!figures.openBreakers.length && !state.incidents.length) return h("p.empty", null, "All breakers are closed and no incident is open.");
  return h("ul.plain", null,
    figures.openBreakers.map((one) => h("li", { "data-key": one.key }, breakerBadge(one.state), " ", h("a", { href: to("breakers") }, one.key))),
    state.incidents.map((one) => h("li", { "data-key": one.incidentId }, badge(one.severity, one.severity), " ", h("a", { href: to("incidents") }, `${one.source}: ${one.cause}`), quiet(one.count > 1 ? ` ${one.count} times` : ""))));
}

function failures(state) {
  return table("Latest failures", [
    { head: "Job", class: "w", cell: (job) => h("a", { href: to("job", job.id) }, job.artifactId) },
    { head: "What happened", class: "w most", cell: (job) => job.lastError ?? "–" },
    { head: "When", class: "n", cell: (job) => time(job.finishedAt) },
  ], state.failed, { key: (job) => job.id, empty: "No job has failed." });
}

function banners(state, load) {
  const { figures, maintenance } = state;
  return [
    maintenance?.on ? h("div.banner.bad", { "data-key": "maintenance", role: "alert" }, h("strong", null, "Maintenance. "), `No job is leased, for any tenant${maintenance.reason ? `: ${maintenance.reason}` : ""} (${maintenance.actor ?? "unknown"}).`, maintenanceButton(false, load)) : null,
    figures.paused ? h("div.banner.mild", { "data-key": "paused", role: "alert" }, h("strong", null, "The queue is paused. "), "Workers start nothing new until somebody says ", h("code", null, "contentdownload queue resume"), ".") : null,
  ];
}

const switches = (state, load) => (state.maintenance && !state.maintenance.on ? maintenanceButton(true, load) : null);

function maintenanceButton(on, load) {
  return actionButton({
    title: on ? "Begin maintenance" : "End maintenance", verb: on ? "Begin maintenance" : "End maintenance", danger: on, everyone: true,
    words: on ? "No job is leased for any tenant until it ends. Running jobs go on, and can still be watched." : "Jobs are leased again, for every tenant.",
    method: "PUT", path: "/maintenance", body: () => ({ on }), done: load,
  }, on ? "Maintenance…" : "End maintenance…", { key: "maintenance-button" });
}

