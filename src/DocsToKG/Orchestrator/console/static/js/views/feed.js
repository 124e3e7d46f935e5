// What happens, as it happens.

import { h } from "../dom.js";
import { clock, count } from "../format.js";
import { badge, heading, mono, quiet } from "../parts.js";
import { to, toWith } from "../router.js";

const KEPT = 300;
const KINDS = { "job.completed": "good", "job.failed": "bad", "job.timed_out": "bad", "job.canceled": "still", "job.leased": "one", "job.lease_expired": "bad", "job.worker_lost": "bad", "job.retried": "mild", "job.released": "two" };

export function feed(page) {
  const chosen = page.query.get("kind") ?? "";
  const state = { events: [], kinds: new Map(), total: 0, chosen };
  const draw = () => content(state);
  const later = page.gently(250, () => page.renew(draw));
  page.follow("/streams/jobs", ({ event, id, data }) => {
    if (event === "notice") state.events.unshift({ notice: data.message, key: `n${Date.now()}` });
    else if (event !== "back") {
      state.total += 1;
      state.kinds.set(event, (state.kinds.get(event) ?? 0) + 1);
      if (!chosen || event === chosen) state.events.unshift({ event, key: id ?? data.eventId, data });
    }
    state.events.length = Math.min(state.events.length, KEPT);
    later();
  });
  page.show(draw());
}

function content(state) {
  const pill = (word, href, on, n) => h("a.pill", { href, class: on ? "on" : null, "aria-current": on ? "true" : null, "data-key": word }, word, h("span", null, ` ${count(n)}`));
  return [
    heading("Live feed", "From the moment you opened it, the newest first. It waits while you scroll or select."),
    h("nav.pills", { "aria-label": "Kind of event", "data-key": "pills" }, pill("all", to("feed"), !state.chosen, state.total), [...state.kinds].sort().map(([kind, n]) => pill(kind, toWith(["feed"], { kind }), state.chosen === kind, n))),
    h("div.sheet", { "data-key": "sheet" }, state.events.length ? h("ol.feed", { "aria-label": "Events" }, state.events.map(line)) : h("p.empty", null, "Nothing has happened yet. Events appear here by themselves.")),
  ];
}

function line(one) {
  if (one.notice) return h("li", { "data-key": one.key }, quiet("–"), badge("mild", "notice"), one.notice);
  const { data } = one, job = data.job;
  return h("li", { "data-key": one.key }, h("time.mono", { datetime: data.occurredAt }, clock(data.occurredAt)), badge(KINDS[one.event] ?? "still", one.event.replace(/^job\./, "").replaceAll("_", " ")),
    h("span", null, h("a", { href: to("job", job.id) }, `${job.id}`), " ", job.artifactId ?? "", job.source ? quiet(` · ${job.source}`) : null, data.actor.reason ? quiet(` · ${data.actor.reason}`) : null));
}
