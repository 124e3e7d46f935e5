// Circuit breakers: which services are not asked at the moment, since when, and an operator's word that overrules.

import { actionButton } from "../actions.js";
import { gauge } from "../charts.js";
import { h } from "../dom.js";
import { lasting, percent } from "../format.js";
import { badge, breakerBadge, heading, mono, panel, quiet, table, time, until } from "../parts.js";

export function breakers(page) {
  const state = { breakers: null, shown: page.query.get("key"), transitions: [] };
  const draw = () => content(page, state, load);
  const load = async () => {
    try {
      const found = await page.get("/circuit-breakers");
      state.breakers = found.circuitBreakers;
      if (state.shown) state.transitions = (await page.get(`/circuit-breakers/${encodeURIComponent(state.shown)}/transitions`).catch(() => ({ transitions: [] }))).transitions;
      page.renew(draw);
    } catch (error) { if (!state.breakers) page.fail(error, load); }
  };
  page.follow("/streams/dashboard", page.gently(800, load));
  page.every(3, load);
  load();
}

function content(page, state, load) {
  const order = { Open: 0, HalfOpen: 1, Closed: 2 };
  const rows = [...state.breakers].sort((one, other) => order[one.state] - order[other.state] || one.key.localeCompare(other.key));
  return [
    heading("Breakers", "A breaker opens when too many requests fail, and lets a few through to test after a while.", forceAny(load)),
    panel("Breakers", { note: "those that are not closed first" }, list(rows, load)),
    state.shown ? panel(`How ${state.shown} came to this`, { note: "the last change first" }, transitions(state)) : null,
  ];
}

function list(rows, load) {
  return table("Breakers", [
    { head: "Service", class: "w", cell: (one) => h("a", { href: `/console/breakers?key=${encodeURIComponent(one.serviceId)}` }, one.key) },
    { head: "State", cell: (one) => [breakerBadge(one.state), one.forced ? [" ", badge("mild", "forced")] : null] },
    { head: "Failure share", cell: (one) => gauge(`Failures of ${one.key}`, one.failureRate, 1, percent) },
    { head: "Trips at", cell: (one) => quiet(`${percent(one.settings.failureThreshold)} of ${one.settings.minimumSamples} in ${lasting(one.settings.windowSeconds)}`) },
    { head: "Until", cell: (one) => (one.state === "Open" ? (one.openUntil ? until(one.openUntil) : one.forced ? quiet("somebody changes it") : quiet("–")) : quiet("–")) },
    { head: "Changed", class: "n", cell: (one) => time(one.updatedAt) },
    { head: "", cell: (one) => h("div.buttons", null, one.forced ? force(one.serviceId, "unforce", load) : null, one.state === "Open" ? null : force(one.serviceId, "open", load), one.state === "Closed" && !one.forced ? null : force(one.serviceId, "close", load)) },
  ], rows, { key: (one) => one.key, empty: "No breaker is known: no service has failed so far." });
}

const WORDS = {
  open: ["Force open", "Nothing is sent to it until somebody changes that. For a job type: none of its jobs is leased.", "force-open"],
  close: ["Force close", "Requests go out whatever happened, until somebody changes that.", "force-close"],
  unforce: ["Let it judge", "It goes by the answers again.", "unforce"],
};
function force(service, way, load) {
  const [verb, words, path] = WORDS[way];
  return actionButton({ title: `${verb}: ${service}`, verb, words, danger: way === "open", path: `/circuit-breakers/${encodeURIComponent(service)}/${path}`, done: load }, `${verb}…`, { label: `${verb} ${service}` });
}

function forceAny(load) {
  return actionButton({
    title: "Force a breaker", verb: "Force", words: "A service by its name, or host:, resolver:, jobtype: and a name.",
    fields: [{ name: "service", label: "Service", required: true, placeholder: "jobtype:content.download" }, { name: "way", label: "To", type: "select", options: ["open", "closed"], value: "open" }],
    path: (values) => `/circuit-breakers/${encodeURIComponent(values.service.trim() || "SERVICE")}/force-${values.way === "open" ? "open" : "close"}`, done: load,
  }, "Force a breaker…", { key: "force" });
}

function transitions(state) {
  return table("Transitions", [
    { head: "When", cell: (one) => time(one.at, { relative: false }) },
    { head: "From", cell: (one) => one.oldState.replace("-", " ") },
    { head: "To", cell: (one) => breakerBadge(one.newState) },
    { head: "Why", class: "w", cell: (one) => one.why },
    { head: "By", class: "w", cell: (one) => mono(one.actor) },
    { head: "For", class: "n", cell: (one) => (one.resetSeconds === null ? quiet("–") : lasting(one.resetSeconds)) },
  ], state.transitions, { empty: "It has not changed yet." });
}
