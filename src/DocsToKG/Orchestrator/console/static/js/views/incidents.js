// What went wrong and who looks at it; and the trail of all that people decided.

import { actionButton } from "../actions.js";
import { h } from "../dom.js";
import { count } from "../format.js";
import { badge, heading, mono, pager, panel, quiet, table, time } from "../parts.js";
import { to, toWith } from "../router.js";

export function incidents(page) {
  const query = { state: page.query.get("state") ?? "", ticket: page.query.get("ticket") ?? "", actor: page.query.get("actor") ?? "", page: page.query.get("page") };
  const state = { query, incidents: null, actions: [], next: null, trail: null };
  const draw = () => content(page, state, load);
  const load = async () => {
    try {
      const [found, actions] = await Promise.all([
        page.get("/incidents", { state: query.state, page_size: 50 }),
        page.get("/actions", { ticket: query.ticket, actor: query.actor, page_size: 50, page_token: query.page }).catch((error) => { if (error.name === "AbortError") throw error; return { actions: [], problem: error.message }; }),
      ]);
      Object.assign(state, { incidents: found.incidents, actions: actions.actions, next: actions.next_page_token, trail: actions.problem ?? null });
      page.renew(draw);
    } catch (error) { if (!state.incidents) page.fail(error, load); }
  };
  page.follow("/streams/dashboard", page.gently(1500, load));
  load();
}

function content(page, state, load) {
  return [
    heading("Incidents and audit", "Problems join one incident until it is resolved. Every decision is kept with its reason."),
    h("nav.pills", { "aria-label": "State of incidents", "data-key": "pills" }, [["", "all"], ["open", "open"], ["acknowledged", "acknowledged"], ["resolved", "resolved"]].map(([value, word]) => h("a.pill", { "data-key": word, href: toWith(["incidents"], { ...state.query, state: value, page: null }), class: state.query.state === value ? "on" : null, "aria-current": state.query.state === value ? "true" : null }, word))),
    panel("Incidents", { note: "the last one first" }, list(state, load)),
    panel("Audit trail", { note: "who did what, why, and by which ticket" }, filters(page, state), trail(page, state)),
  ];
}

function list(state, load) {
  return table("Incidents", [
    { head: "Severity", cell: (one) => badge(one.severity, one.severity) },
    { head: "State", cell: (one) => badge(one.state, one.state) },
    { head: "Where", class: "w", cell: (one) => one.source },
    { head: "What", class: "w", cell: (one) => one.cause },
    { head: "Times", class: "n", cell: (one) => count(one.count) },
    { head: "First", class: "n", cell: (one) => time(one.firstAt) },
    { head: "Last", class: "n", cell: (one) => time(one.lastAt) },
    { head: "Looked at by", class: "w", cell: (one) => (one.actor ? [mono(one.actor), one.reason ? quiet(` ${one.reason}`) : null, one.ticket ? quiet(` ${one.ticket}`) : null] : quiet("nobody yet")) },
    { head: "", cell: (one) => h("div.buttons", null, one.state === "open" ? decide(one, "acknowledge", "Acknowledge", "Says that somebody looks at it.", load) : null, one.state === "resolved" ? null : decide(one, "resolve", "Resolve", "What happens from now on is a new incident.", load)) },
  ], state.incidents, { key: (one) => one.incidentId, empty: "No incident." });
}
const decide = (one, path, verb, words, load) => actionButton({ title: `${verb}: ${one.source}`, verb, words, path: `/incidents/${encodeURIComponent(one.incidentId)}/${path}`, extra: { "If-Match": `"v${one.version}"` }, done: load }, `${verb}…`);

function filters(page, state) {
  const submit = (event) => {
    event.preventDefault();
    const form = new FormData(event.target);
    page.go(toWith(["incidents"], { state: state.query.state, actor: String(form.get("actor")).trim(), ticket: String(form.get("ticket")).trim() }));
  };
  return h("form.search", { role: "search", onsubmit: submit, "data-key": "filters" },
    h("input", { name: "actor", value: state.query.actor, placeholder: "by whom", "aria-label": "By whom", "data-search": true }),
    h("input", { name: "ticket", value: state.query.ticket, placeholder: "ticket", "aria-label": "Ticket" }), h("button", { type: "submit" }, "Filter"));
}

function trail(page, state) {
  if (state.trail) return h("p.empty", null, `The trail cannot be shown: ${state.trail}`);
  const go = (token) => page.go(toWith(["incidents"], { ...state.query, page: token }));
  return [
    table("Audit trail", [
      { head: "When", cell: (one) => time(one.at, { relative: false }) },
      { head: "What", cell: (one) => badge("still", one.action.replaceAll("_", " ")) },
      { head: "On", class: "w", cell: (one) => (one.jobId ? h("a", { href: to("job", one.jobId) }, `job ${one.jobId}`) : about(one)) },
      { head: "By", class: "w", cell: (one) => [mono(one.actor), one.tenant === "*" ? quiet(" for every tenant") : null] },
      { head: "Why", class: "w", cell: (one) => one.reason ?? quiet("–") },
      { head: "Ticket", cell: (one) => one.ticket ?? quiet("–") },
    ], state.actions, { key: (one) => one.seq, empty: "Nobody has decided anything yet." }),
    pager({ first: Boolean(state.query.page), next: Boolean(state.next), onFirst: () => go(null), onNext: () => go(state.next) }),
  ];
}

/** What a decision changed, in short: name and value, old to new where both are told. */
function about(one) {
  const words = Object.entries(one.detail ?? {}).filter(([, value]) => value !== null && value !== "").slice(0, 5).map(([name, value]) => `${name.replaceAll("_", " ")} ${typeof value === "object" ? JSON.stringify(value) : value}`);
  return words.length ? quiet(words.join(" · ").slice(0, 240)) : quiet("–");
}
