// Where papers come from: what each source and host gives, how it is limited, what holds it, and pausing it.

import { actionButton } from "../actions.js";
import { gauge } from "../charts.js";
import { h } from "../dom.js";
import { count, percent, size } from "../format.js";
import { badge, breakerBadge, heading, mono, panel, quiet, table, time, until } from "../parts.js";
import { toWith } from "../router.js";

export function sources(page) {
  const state = { sources: null, throttles: [], breakers: new Map() };
  const draw = () => content(state, load);
  const load = async () => {
    try {
      const [found, throttles, breakers] = await Promise.all([page.get("/sources"), page.get("/throttles"), page.get("/circuit-breakers")]);
      state.sources = found.sources;
      state.throttles = throttles.throttles;
      state.breakers = new Map(breakers.circuitBreakers.map((one) => [one.key, one]));
      page.renew(draw);
    } catch (error) { if (!state.sources) page.fail(error, load); }
  };
  page.follow("/streams/dashboard", page.gently(1000, load));
  page.every(4, load);
  load();
}

function content(state, load) {
  const hosts = state.sources.flatMap((source) => (source.hosts ?? []).filter((host) => host.host).map((host) => ({ ...host, source: source.name })));
  return [
    heading("Sources and hosts", "A paused source starts nothing new; what runs may end.", throttleButton(load), pauseAnother(load)),
    panel("Sources", { note: "what workers know of them" }, sourceTable(state, load)),
    panel("Hosts", { note: "requests, refusals and when each may be asked again" }, hostTable(hosts, state)),
    panel("Throttles in force", { note: "operators' and breakers' holds" }, throttleTable(state, load)),
  ];
}

/** What its hosts gave, where any was asked. */
function sums(source) {
  const hosts = source.hosts ?? [];
  return hosts.length ? { requests: source.requests, refused: source.refused, works: source.works, failed: hosts.reduce((sum, host) => sum + host.failed, 0) } : null;
}

function sourceTable(state, load) {
  const all = state.sources.reduce((sum, source) => sum + (source.works ?? 0), 0);
  return table("Sources", [
    { head: "Source", cell: (source) => h("a", { href: toWith(["jobs"], { search: `source:${source.name}` }) }, source.name) },
    { head: "State", cell: (source) => (source.paused ? badge("paused") : source.throttles.length ? badge("mild", "limited") : badge("good", "open")) },
    { head: "Requests", class: "n", cell: (source) => figure(sums(source)?.requests) },
    { head: "429", class: "n", cell: (source) => refusals(sums(source)) },
    { head: "Failed", class: "n", cell: (source) => figure(sums(source)?.failed) },
    { head: "Works", class: "n", cell: (source) => figure(sums(source)?.works) },
    { head: "Yield", cell: (source) => (sums(source)?.works ? gauge(`Share of all works that ${source.name} gave`, source.works, all, () => percent(source.works / all)) : quiet("–")) },
    { head: "Held", class: "w", cell: held },
    { head: "Seen", class: "n", cell: (source) => time(source.updatedAt) },
    { head: "", cell: (source) => h("div.buttons", null, pauseButton(source, load)) },
  ], state.sources, { key: (source) => source.name, empty: "No source has told anything yet. Workers tell of their sources while they run; a source can be paused before that." });
}
const figure = (n) => (n === undefined || n === null ? quiet("–") : count(n));
const refusals = (sum) => (sum?.requests ? (sum.refused ? h("span.bad", null, `${count(sum.refused)} (${percent(sum.refused / sum.requests)})`) : "0") : quiet("–"));
const held = (source) => quiet(source.throttles.map((one) => one.reason).filter(Boolean).join("; ") || "–");

function pauseButton(source, load) {
  const path = `/sources/${encodeURIComponent(source.name)}`;
  return source.paused
    ? actionButton({ title: `Resume ${source.name}`, verb: "Resume", words: "Jobs of this source are leased again.", path: `${path}/resume`, done: load }, "Resume…", { label: `Resume ${source.name}` })
    : actionButton({ title: `Pause ${source.name}`, verb: "Pause", words: "No further job of this source is leased until you resume it. Others go on.", path: `${path}/pause`, done: load }, "Pause…", { label: `Pause ${source.name}` });
}

function pauseAnother(load) {
  return actionButton({
    title: "Pause a source", verb: "Pause", words: "No further job of this source is leased until you resume it.", fields: [{ name: "source", label: "Source", required: true, placeholder: "arxiv" }],
    path: (values) => `/sources/${encodeURIComponent(values.source.trim() || "SOURCE")}/pause`, done: load,
  }, "Pause a source…", { key: "pause-any" });
}

function throttleButton(load) {
  return actionButton({
    title: "Hold jobs back", verb: "Throttle", words: "From the next lease on, everywhere. Leave type and source empty to hold all of this tenant.",
    fields: [
      { name: "jobType", label: "Job type", placeholder: "content.download" }, { name: "source", label: "Source", placeholder: "arxiv" },
      { name: "maxActive", label: "At most this many at once", type: "number", min: 0, hint: "Empty: none at all (a pause)." },
      { name: "minutes", label: "For how many minutes", type: "number", min: 1, hint: "Empty: until it is lifted." },
    ],
    path: "/limits/throttle",
    body: (values) => ({
      ...(values.jobType.trim() ? { jobType: values.jobType.trim() } : {}), ...(values.source.trim() ? { source: values.source.trim() } : {}),
      ...(values.maxActive === "" ? { pause: true } : { maxActive: Number(values.maxActive) }), ...(values.minutes ? { expiresInSeconds: Number(values.minutes) * 60 } : {}),
    }), done: load,
  }, "Throttle…", { key: "throttle" });
}

function hostTable(hosts, state) {
  return table("Hosts", [
    { head: "Host", class: "w", cell: (host) => h("a", { href: toWith(["jobs"], { search: `host:${host.host}` }) }, host.host) },
    { head: "Source", cell: (host) => host.source },
    { head: "Breaker", cell: (host) => breakerOf(host, state) },
    { head: "Requests", class: "n", cell: (host) => figure(host.requests) },
    { head: "429", class: "n", cell: refusals },
    { head: "Last", class: "n", cell: (host) => host.lastStatus ?? quiet("–") },
    { head: "Bytes", class: "n", cell: (host) => (host.bytes ? size(host.bytes) : quiet("–")) },
    { head: "Limits", class: "w", cell: (host) => limitWords(host.limits) },
    { head: "May be asked", class: "w", cell: (host) => (host.nextAllowedAt && Date.parse(host.nextAllowedAt) > Date.now() ? [until(host.nextAllowedAt), host.heldBy ? quiet(` (${host.heldBy})`) : null] : quiet("now")) },
  ], hosts, { key: (host) => `${host.source}/${host.host}`, empty: "No host has been asked yet." });
}
function breakerOf(host, state) {
  const word = state.breakers.get(`host:${host.host}`)?.state ?? host.breaker;
  return word ? breakerBadge(word) : quiet("–");
}
function limitWords(limits) {
  const words = Object.entries(limits ?? {}).filter(([, value]) => value !== null && typeof value !== "object").map(([name, value]) => `${name.replaceAll("_", " ")} ${value}`);
  return words.length ? quiet(words.join(" · ")) : quiet("–");
}

function throttleTable(state, load) {
  return table("Throttles", [
    { head: "Holds", cell: (one) => [one.jobType ?? "every type", one.source ? ` of ${one.source}` : ""] },
    { head: "How", cell: (one) => (one.mode === "pause" ? badge("paused") : badge("mild", `at most ${one.maxActive}`)) },
    { head: "Set by", class: "w", cell: (one) => [mono(one.actor), one.origin === "breaker" ? quiet(" (a breaker)") : null] },
    { head: "Why", class: "w", cell: (one) => [one.reason ?? quiet("–"), one.ticket ? quiet(` ${one.ticket}`) : null] },
    { head: "Since", class: "n", cell: (one) => time(one.createdAt) },
    { head: "Ends", class: "n", cell: (one) => (one.expiresAt ? until(one.expiresAt) : quiet("when lifted")) },
    { head: "", cell: (one) => h("div.buttons", null, actionButton({ title: "Lift this throttle", verb: "Lift", words: one.origin === "breaker" ? "Closes the breaker that set it, too." : "What it holds may be leased again.", path: `/throttles/${encodeURIComponent(one.throttleId)}/lift`, done: load }, "Lift…")) },
  ], state.throttles, { key: (one) => one.throttleId, empty: "Nothing is held back." });
}
