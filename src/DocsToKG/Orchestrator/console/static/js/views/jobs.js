// The list of jobs: filters that live in the address, pages by key, and actions on several at once.

import { actionButton } from "../actions.js";
import { send } from "../api.js";
import { h } from "../dom.js";
import { brief, shortId, STATUSES, statusWord } from "../format.js";
import { badge, heading, pager, problem, quiet, table, time } from "../parts.js";
import { to, toWith } from "../router.js";

const QUALIFIERS = ["status:", "type:", "source:", "host:", "worker:", "error:", "stage:", "outcome:", "artifact:", "correlation:", "project:"];
const OPEN = ["pending", "queued", "leased"];

export function jobs(page) {
  const state = {
    status: page.query.getAll("status").filter((word) => STATUSES.includes(word)), search: page.query.get("search") ?? "",
    since: page.query.get("since") ?? "", token: page.query.get("page"), jobs: null, next: null, counts: null, chosen: new Set(), error: null,
  };
  const draw = () => content(page, state, { load, narrow });
  const load = async () => {
    try {
      const found = await page.get("/jobs", { status: state.status, search: state.search, page_size: 50, page_token: state.token, createdFrom: from(state.since) });
      Object.assign(state, { jobs: found.jobs, next: found.next_page_token, error: null });
    } catch (error) {
      if (error.name === "AbortError") return;
      state.error = error;
    }
    page.renew(draw);
  };
  const narrow = (changes) => page.go(toWith(["jobs"], { status: state.status, search: state.search, since: state.since, ...changes, page: changes.page ?? null }));
  // A page further back stays as it is; only the newest one moves by itself.
  const soon = page.gently(1500, () => { if (!state.token) load(); });
  page.follow("/streams/jobs", soon);
  page.follow("/streams/dashboard", ({ event, data }) => { if (event === "dashboard.metrics") { state.counts = data.counts; page.renew(draw); } });
  load();
}

const HOURS = { "1h": 1, "24h": 24, "7d": 168 };
const from = (word) => (HOURS[word] ? new Date(Date.now() - HOURS[word] * 3600_000).toISOString() : null);

function content(page, state, doing) {
  return [
    heading("Jobs", "Newest first. The address of this page keeps your filters: share it.", allFitting("cancel", state, doing), allFitting("retry", state, doing)),
    pills(state), search(state, doing), bulk(state, doing),
    state.error ? problem(state.error, doing.load) : state.jobs === null ? h("p.quiet.loading", null, "Loading…") : list(state, page, doing),
  ];
}

function pills(state) {
  const total = state.counts ? Object.values(state.counts).reduce((sum, n) => sum + n, 0) : null;
  const pill = (word, href, on, n) => h("a.pill", { href, class: on ? "on" : null, "aria-current": on ? "true" : null, "data-key": word }, word, n === null || n === undefined ? null : h("span", null, ` ${brief(n)}`));
  return h("nav.pills", { "aria-label": "Status", "data-key": "pills" },
    pill("all", toWith(["jobs"], { search: state.search, since: state.since }), !state.status.length, total),
    STATUSES.map((status) => {
      const on = state.status.includes(status);
      const status_ = on ? state.status.filter((word) => word !== status) : [...state.status, status];
      return pill(statusWord(status), toWith(["jobs"], { status: status_, search: state.search, since: state.since }), on, state.counts?.[status]);
    }));
}

function search(state, { narrow }) {
  const submit = (event) => { event.preventDefault(); narrow({ search: String(new FormData(event.target).get("search")).trim() }); };
  return h("form.search", { role: "search", onsubmit: submit, "data-key": "search" },
    h("input", { name: "search", type: "search", value: state.search, "aria-label": "Search jobs", placeholder: "words, a number, or type: source: host: worker: error: …", list: "qualifiers", autocomplete: "off", "data-search": true }),
    h("datalist", { id: "qualifiers" }, QUALIFIERS.map((word) => h("option", { value: word }))),
    h("select", { "aria-label": "Created", onchange: (event) => narrow({ since: event.target.value }) },
      [["", "any time"], ["1h", "the last hour"], ["24h", "the last 24 hours"], ["7d", "the last 7 days"]].map(([value, words]) => h("option", { value, selected: value === state.since }, words))),
    h("button", { type: "submit" }, "Search"),
    state.search || state.status.length || state.since ? h("a.button", { href: to("jobs") }, "Clear") : null);
}

function list(state, page, { narrow, load }) {
  const all = state.jobs.length > 0 && state.jobs.every((job) => state.chosen.has(job.id));
  const mark = (ids, on) => { for (const id of ids) if (on) state.chosen.add(id); else state.chosen.delete(id); page.show(content(page, state, { narrow, load })); };
  const box = (label, on, then) => {
    const made = h("input", { type: "checkbox", "aria-label": label, checked: on, onchange: (event) => then(event.target.checked) });
    made.checked = on;
    return made;
  };
  return h("div.sheet", { "data-key": "list" },
    table("Jobs", [
      { head: box("Choose all on this page", all, (on) => mark(state.jobs.map((job) => job.id), on)), class: "tight", cell: (job) => box(`Choose job ${job.id}`, state.chosen.has(job.id), (on) => mark([job.id], on)) },
      { head: "Job", class: "n", cell: (job) => h("a", { href: to("job", job.id), "data-job": job.id }, String(job.id)) },
      { head: "Status", cell: (job) => badge(job.status) },
      { head: "Artifact", class: "line", cell: (job) => [h("a", { href: to("job", job.id), tabindex: "-1" }, job.artifactId), job.replayOf ? quiet(` copy of ${job.replayOf}`) : null] },
      { head: "Where it stands", class: "line", cell: standing, title: (job) => job.lastError },
      { head: "Source", class: "spare", cell: (job) => job.source ?? job.hostKey ?? quiet("–") },
      { head: "Tries", class: "n spare", cell: (job) => `${job.attempts}/${job.maxAttempts}` },
      { head: "Changed", class: "n", cell: (job) => time(job.updatedAt) },
    ], state.jobs, { key: (job) => job.id, empty: state.search || state.status.length || state.since ? "No job fits. A wide search looks at the newest jobs first; an older page may hold more." : "No jobs yet." }),
    pager({ first: Boolean(state.token), next: Boolean(state.next), onFirst: () => narrow({ page: null }), onNext: () => narrow({ page: state.next }), words: state.token ? "an older page; it does not move by itself" : "moves by itself" }));
}

function standing(job) {
  if (job.status === "failed" || job.status === "timed_out") return job.lastError ?? job.outcome ?? "–";
  if (job.status === "leased") return [job.stage ?? "at work", quiet(` by ${shortId(job.workerId)}`)];
  if (OPEN.includes(job.status)) return Date.parse(job.nextEligibleAt) > Date.now() ? ["may run ", time(job.nextEligibleAt), job.lastError ? quiet(` after: ${job.lastError}`) : null] : h("a", { href: to("job", job.id) }, "why is it not running?");
  return quiet(job.outcome ?? "–");
}

const BULK = {
  cancel: ["Cancel all that fit", "Every job that fits the filter and is not over is called off.", true],
  retry: ["Retry all that fit", "Every failed job that fits the filter is queued again, with its attempts reset.", false],
};

/** One decision for all jobs of the filter: counted first, and jobs that come later are left alone. */
function allFitting(action, state, { load }) {
  const [verb, words, danger] = BULK[action];
  const filter = { ...(state.status.length ? { status: state.status } : {}), ...(state.search ? { search: state.search } : {}), ...(state.since ? { createdFrom: from(state.since) } : {}) };
  const meant = { upTo: 0 };
  return actionButton({
    title: verb, verb, words: `${words} ${state.status.length || state.search || state.since ? "" : "There is no filter: this means all jobs of the tenant."}`, danger, path: `/bulk-actions/${action}`,
    fields: [{ name: "count", label: "Type the number of jobs to confirm", required: true }],
    body: (values) => ({ filter, upTo: meant.upTo, typed: values.count }), once: true,
    preview: async () => {
      const found = await send("POST", "/bulk-actions/preview", { action, filter });
      Object.assign(meant, { upTo: found.upTo, count: found.count });
      return [h("p", null, h("strong", null, `${found.complete ? "" : "more than "}${found.count} jobs`), ` up to number ${found.upTo} would change.`),
        found.sample.length ? h("p.quiet", null, `The newest: ${found.sample.slice(0, 5).map((job) => `${job.id} ${job.artifactId}`).join("; ")}`) : null];
    },
    run: async ({ typed, ...sent }) => {
      if (String(typed).trim() !== String(meant.count)) throw new Error(`Type ${meant.count ?? "the number of the preview"} to confirm.`);
      let changed = 0;
      for (let upTo = sent.upTo; upTo !== null;) {
        const told = await send("POST", `/bulk-actions/${action}`, { ...sent, upTo });
        changed += told.changed;
        upTo = told.upTo;
      }
      return { changed };
    },
    said: (told) => `${verb}: ${told.changed} changed.`, done: load,
  }, `${verb}…`, { key: `all-${action}` });
}

/** Each job by its own call, a few at a time; says how many went well. */
async function each(ids, path, body) {
  const left = [...ids], told = { good: 0, bad: [] };
  const one = async () => {
    for (let id = left.shift(); id !== undefined; id = left.shift()) {
      try { await send("POST", path(id), body); told.good += 1; } catch (error) { told.bad.push(`${id}: ${error.message}`); }
    }
  };
  await Promise.all([one(), one(), one()]);
  if (told.bad.length) throw new Error(`${told.good} done, ${told.bad.length} refused. ${told.bad.slice(0, 3).join("; ")}`);
  return told;
}

function bulk(state, { load }) {
  if (!state.chosen.size || !state.jobs) return null;
  const chosen = [...state.chosen];
  const known = state.jobs.filter((job) => state.chosen.has(job.id));
  const ids = (test) => known.filter(test).map((job) => job.id);
  const open = ids((job) => OPEN.includes(job.status)), ended = ids((job) => !OPEN.includes(job.status)), dead = ids((job) => job.status === "failed" || job.status === "timed_out");
  const done = () => { state.chosen.clear(); load(); };
  const action = (verb, fitting, words, path, more = {}) => actionButton({
    title: `${verb} ${fitting.length} of ${chosen.length} chosen jobs`, verb, words, refused: fitting.length ? null : `None of the chosen jobs can be: ${words}`,
    preview: async () => h("p", null, `${fitting.length} will change: ${fitting.slice(0, 8).join(", ")}${fitting.length > 8 ? " …" : ""}. ${chosen.length - fitting.length} stay as they are.`),
    typed: fitting.length > 10 ? String(fitting.length) : null, path: path(fitting[0] ?? 0), run: (body) => each(fitting, path, body), said: (told) => `${verb}: ${told?.good ?? fitting.length} done.`, done, ...more,
  }, `${verb} ${fitting.length}…`, { key: verb });
  return h("div.bulk", { "data-key": "bulk", role: "group", "aria-label": "Chosen jobs" }, h("strong", null, `${chosen.length} chosen`),
    action("Cancel", open, "Jobs that have not ended are called off.", (id) => `/jobs/${id}/cancel`, { danger: true }),
    action("Retry", dead, "Failed jobs are queued again, with their attempts reset.", () => "/dead-letters/retry", { body: () => ({ jobIds: dead }), run: (body) => send("POST", "/dead-letters/retry", body).then((told) => ({ good: told.jobs.length })) }),
    action("Replay", ended, "Ended jobs run once more, as copies.", (id) => `/jobs/${id}/replay`),
    h("button", { type: "button", onclick: done }, "Choose none"));
}
