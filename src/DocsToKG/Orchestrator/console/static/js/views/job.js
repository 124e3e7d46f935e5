// One job: where it stands and why, its life as a line, what was tried, what came of it, what can be done.

import { actionButton } from "../actions.js";
import { timeline } from "../charts.js";
import { h } from "../dom.js";
import { lasting, localTimes, shortId, size, statusWord } from "../format.js";
import { badge, copyButton, facts, heading, mono, panel, pretty, quiet, table, time, until } from "../parts.js";
import { to } from "../router.js";

const OPEN = ["pending", "queued", "leased"];
const EVENT_KINDS = { finished: "good", failed: "bad", retried: "mild", enqueued: "one", leased: "one", canceled: "still", lease_expired: "bad", worker_lost: "bad" };

const kindOf = (event) => (event.toState === "error" || event.toState === "timed_out" ? "bad" : EVENT_KINDS[event.event] ?? "still");

export function job(page) {
  const id = page.parts[0];
  const state = { job: null, events: [], more: false };
  const draw = () => content(state.job, state, load, page);
  const load = async () => {
    try {
      const [found, history] = await Promise.all([page.get(`/jobs/${encodeURIComponent(id)}`), page.get(`/jobs/${encodeURIComponent(id)}/history`, { page_size: 200 })]);
      Object.assign(state, { job: found, events: history.events, more: Boolean(history.next_page_token) });
      page.setTitle(`Job ${found.id}`);
      page.renew(draw);
    } catch (error) { if (!state.job) page.fail(error, load); }
  };
  const soon = page.gently(400, load);
  page.follow("/streams/jobs", ({ event, data }) => { if (event === "back" || String(data?.job?.id) === String(id) || String(data?.detail?.replayOf ?? "") === String(id)) soon(); });
  page.every(5, () => { if (!state.job || OPEN.includes(state.job.status)) load(); });
  load();
}

function content(found, state, load, page) {
  return [
    heading([`Job ${found.id} `, badge(found.status)], [found.artifactId, found.result?.title ? ` – ${found.result.title}` : ""], ...actions(found, load, page)),
    why(found),
    h("div.grid", { "data-key": "grid" },
      h("div.stack.wide", { "data-key": "body" },
        panel("Timeline", { note: "waiting and working" }, life(found, state), legendOf()),
        found.result ? panel("Result", { note: "as the worker told it" }, result(found.result)) : null,
        panel("Leases", { note: "who had it, under which fence" }, leases(found)),
        panel("History", { note: state.more ? "the first 200" : "first to last" }, history(state))),
      h("div.stack", { "data-key": "aside" },
        panel("Facts", { note: null }, about(found)),
        panel("Related", { note: "copies and dependencies" }, related(found)),
        panel("Payload", { note: null, side: copyButton(JSON.stringify(found.payload)) }, pretty(found.payload, "Payload"), h("p.quiet", null, mono(found.payloadDigest))))),
  ];
}

function why(found) {
  const { reason, detail, at } = found.why;
  if (reason === "ended") return h("div.why", { "data-key": "why", class: found.status }, h("h2", null, "It is over"), h("p", null, localTimes(detail)));
  const title = reason === "leased" ? "It is running" : "Why is it not running?";
  return h("div.why", { "data-key": "why", class: found.status, role: "status" }, h("h2", null, title, " ", badge("reason", reason.replace("_", " "))),
    h("p.why-detail", null, localTimes(detail)), at && reason !== "leased" ? h("p", null, "It may run ", until(at), ".") : null,
    found.why.host ? h("p.quiet", null, "Next host: ", found.why.host) : null);
}

/** Waiting between leases, working in them; each event is a mark. */
function life(found, state) {
  const begin = Date.parse(found.createdAt), end = found.finishedAt ? Date.parse(found.finishedAt) : Date.now();
  const spans = [];
  let at = begin;
  for (const lease of found.leaseHistory) {
    const from = Date.parse(lease.leasedAt), to_ = lease.endedAt ? Date.parse(lease.endedAt) : end;
    if (from > at) spans.push({ from: at, to: from, name: "wait", word: "waited" });
    spans.push({ from, to: to_, name: lease.endedBy === "finished" && found.status === "succeeded" ? "good" : lease.endedAt ? (lease.endedBy === "released" ? "two" : "bad") : "one", word: `worked (fence ${lease.fence})` });
    at = to_;
  }
  if (end > at || !spans.length) spans.push({ from: at, to: Math.max(at, end), name: "wait", word: found.finishedAt ? "waited" : "waits" });
  const marks = state.events.map((event) => ({ at: Date.parse(event.at), word: event.event, name: kindOf(event) }));
  return timeline("The job's life", spans, marks);
}
const legendOf = () => h("ul.legend", null, [["wait", "waits"], ["one", "works"], ["two", "given back"], ["good", "worked, and it is done"], ["bad", "worked in vain"]].map(([name, words]) => h("li", null, h("i", { class: `dot ${name}` }), words)));

function about(found) {
  const { metrics } = found;
  return facts([
    ["Type", found.jobType], ["Source", found.source], ["Host", found.hostKey], ["Project", found.project], ["Priority", found.priority],
    ["Stage", found.stage], ["Outcome", found.outcome], ["Attempts", `${found.attempts} of ${found.maxAttempts}`], ["Fence", found.fence], ["Crashes", metrics.crashes || null],
    ["Worker", found.workerId ? mono(shortId(found.workerId), found.workerId) : null], ["Lease until", found.leaseUntil ? until(found.leaseUntil) : null],
    ["First wait", lasting(metrics.firstWaitSeconds)], ["Worked", lasting(metrics.workingSeconds)], ["All in all", metrics.totalSeconds === null ? null : lasting(metrics.totalSeconds)],
    ["Created", time(found.createdAt, { relative: false })], ["Finished", found.finishedAt ? time(found.finishedAt, { relative: false }) : null],
    ["Last error", found.lastError], ["Correlation", found.correlationId ? mono(found.correlationId) : null], ["Trace", found.traceContext ? [mono(traceId(found.traceContext)), " ", copyButton(traceId(found.traceContext))] : null],
    ["Idempotency key", found.idempotencyKey ? mono(found.idempotencyKey) : null],
  ]);
}
const traceId = (context) => context.split("-")[1] ?? context;

function result(told) {
  const candidates = Array.isArray(told.candidates) ? told.candidates : [];
  const known = ["candidates", "title", "license", "version", "year", "resolver", "tier", "path", "sha256", "size_bytes", "outcome", "reason", "explanation"];
  const rest = Object.fromEntries(Object.entries(told).filter(([name, value]) => !known.includes(name) && value !== null));
  return [
    facts([
      ["Outcome", told.outcome ? `${told.outcome}${told.reason && told.reason !== "ok" ? ` – ${told.reason}` : ""}` : null], ["Title", told.title], ["Licence", told.license], ["Version", told.version], ["Year", told.year],
      ["From", told.resolver ? `${told.resolver}${told.tier ? ` (${told.tier})` : ""}` : null], ["File", told.path ? [mono(told.path), " ", copyButton(told.path)] : null],
      ["Size", told.size_bytes ? size(told.size_bytes) : null], ["SHA-256", told.sha256 ? mono(told.sha256) : null], ["Explanation", told.explanation],
    ]),
    candidates.length ? [h("h3", null, "Candidates tried"), table("Candidates tried", [
      { head: "From", cell: (one) => one.source ?? "–" },
      { head: "Address", class: "w", cell: (one) => mono(one.url ?? "–") },
      { head: "Why not", class: "w", cell: (one) => [badge("failed", one.reason ?? "–"), quiet([one.http_status, one.evidence, one.detail].filter(Boolean).map((word) => ` ${word}`).join(","))] },
    ], candidates)] : null,
    Object.keys(rest).length ? h("details", null, h("summary", null, "All that was told"), pretty(rest, "Result")) : null,
  ];
}

function leases(found) {
  return table("Leases", [
    { head: "Fence", class: "n", cell: (lease) => lease.fence },
    { head: "Worker", class: "w", cell: (lease) => mono(shortId(lease.workerId), lease.workerId) },
    { head: "From", cell: (lease) => time(lease.leasedAt, { relative: false }) },
    { head: "For", class: "n", cell: (lease) => (lease.endedAt ? lasting((Date.parse(lease.endedAt) - Date.parse(lease.leasedAt)) / 1000) : "still") },
    { head: "Ended by", class: "w", cell: (lease) => [lease.endedBy ?? "–", lease.reason ? quiet(` ${lease.reason}`) : null] },
  ], found.leaseHistory, { key: (lease) => lease.fence, empty: "No worker has had it yet." });
}

function related(found) {
  const list = (ids) => ids.map((id, place) => [place ? ", " : "", h("a", { href: to("job", id) }, String(id))]);
  const pairs = [
    ["Copy of", found.replayChain.length ? list(found.replayChain) : null], ["Replayed as", found.replays.length ? list(found.replays) : null], ["Waits for", found.dependencies.length ? list(found.dependencies) : null],
  ];
  return pairs.some(([, value]) => value) ? facts(pairs) : h("p.empty", null, "It is no copy, has none and waits for no other job.");
}

function history(state) {
  return table("History", [
    { head: "When", cell: (event) => time(event.at, { relative: false }) },
    { head: "What", cell: (event) => [badge(kindOf(event), event.event.replaceAll("_", " ")), event.toState && event.toState !== event.fromState ? quiet(` ${event.toState.replace("_", " ")}`) : null] },
    { head: "Fence", class: "n", cell: (event) => event.fence ?? "–" },
    { head: "By", class: "w", cell: (event) => mono(shortId(event.actor), event.actor) },
    { head: "Why", class: "w most", cell: (event) => [event.reason ?? quiet("–"), event.ticket ? quiet(` ${event.ticket}`) : null] },
    { head: "Link", class: "n", cell: (event) => mono(event.hash.slice(0, 8), event.hash) },
  ], state.events, { key: (event) => event.seq });
}

function actions(found, load, page) {
  const open = OPEN.includes(found.status), dead = found.status === "failed" || found.status === "timed_out";
  const path = (word) => `/jobs/${found.id}/${word}`;
  return [
    open ? actionButton({ title: `Cancel job ${found.id}`, verb: "Cancel job", danger: true, words: found.status === "leased" ? "Its worker learns of it at its next renewal." : "It will not run.", path: path("cancel"), done: load }, "Cancel…", { key: "cancel" }) : null,
    found.status === "leased" ? actionButton({ title: `Take job ${found.id} from its worker`, verb: "Clear lease", danger: true, words: "For a worker that hangs. What it still does is not counted, because its fence is old.", path: path("clear-lease"), done: load }, "Clear lease…", { key: "clear" }) : null,
    dead ? actionButton({ title: `Retry job ${found.id}`, verb: "Retry", words: "Queues it again with its attempts reset.", path: "/dead-letters/retry", body: () => ({ jobIds: [found.id] }), done: load }, "Retry…", { key: "retry" }) : null,
    open ? null : actionButton({ title: `Replay job ${found.id}`, verb: "Replay", words: `Runs a copy with the same payload and a high priority; this one stays ${statusWord(found.status)}.`, path: path("replay"), done: (copy) => page.go(to("job", copy.id)), said: (copy) => `Job ${copy.id} is the copy.` }, "Replay…", { key: "replay" }),
  ];
}
