// Opens the console: the token, the frame around the views, the view that the address names.

import { get, onUnknown } from "./api.js";
import { patch, h } from "./dom.js";
import { frame } from "./frame.js";
import "./keys.js";
import { follow } from "./live.js";
import { note, problem } from "./parts.js";
import { forget, whenFree } from "./reading.js";
import { amend, go, here, start } from "./router.js";
import { session, signOut, takeFromAddress } from "./session.js";
import { VIEWS } from "./views/all.js";
import { chooseTenantPage, welcome } from "./views/welcome.js";

const main = document.getElementById("main");
let leaving = [];
let current = null;

takeFromAddress();
addEventListener("hashchange", () => { takeFromAddress(); session.who = null; enter(); });
onUnknown(() => {
  if (!session.token()) return;
  signOut();
  note("The service does not know this token, or no longer.", "bad");
  enter();
});
enter();

async function enter() {
  leave();
  if (!session.token()) return alone(welcome());
  try {
    session.who = await get("/whoami");
  } catch (error) {
    if (error.status === 401) return undefined;
    return alone(problem(error, enter));
  }
  if (session.who.tenant === null) return alone(chooseTenantPage(session.who, enter));
  if (!current) start(open);
  else open(here());
  return undefined;
}

function alone(content) {
  frame(null);
  document.title = "Console";
  patch(main, h("main", null, content));
}

function leave() {
  for (const done of leaving.splice(0)) done();
}

function open(place) {
  if (!session.who) return;
  leave();
  const view = VIEWS.find((one) => one.name === place.view) ?? VIEWS[0];
  const page = pageOf(place);
  const fresh = current !== view.name + place.parts.join("/");
  current = view.name + place.parts.join("/");
  document.title = `${view.title} · Console`;
  frame(view.name);
  if (fresh) patch(main, h("main", null, h("p.quiet.loading", null, "Loading…")));
  view.open(page);
  if (fresh) main.focus({ preventScroll: true });
}

/** What a view is given: where it is, how it shows itself, and what ends with it. */
function pageOf(place) {
  const alive = new AbortController();
  leaving.push(() => { alive.abort(); forget("view"); });
  const page = {
    ...place,
    go,
    amend,
    signal: alive.signal,
    /** At once: what the reader asked for. */
    show(content) { if (!alive.signal.aborted) { forget("view"); patch(main, h("main", null, content)); } },
    /** When the reader is free: what came by itself. */
    renew(draw) { if (!alive.signal.aborted) whenFree("view", () => page.show(draw())); },
    fail(error, again) { if (error.name !== "AbortError") page.show(problem(error, again)); },
    follow(path, then) { leaving.push(follow(path, then)); },
    every(seconds, then) {
      const timer = setInterval(() => { if (!document.hidden) then(); }, seconds * 1000);
      leaving.push(() => clearInterval(timer));
    },
    /** `then`, but not more often than every `ms`. */
    gently(ms, then) {
      let timer = null;
      leaving.push(() => clearTimeout(timer));
      return () => { timer ??= setTimeout(() => { timer = null; then(); }, ms); };
    },
    get: (path, query) => get(path, query, { signal: alive.signal }),
    setTitle(words) { document.title = `${words} · Console`; },
  };
  return page;
}
