// What stands around every view: where one can go, how the connection is, whose eyes these are.

import { h, patch } from "./dom.js";
import { count, lasting, setZone, zoneName } from "./format.js";
import { follow, onStanding, reconnect, standing } from "./live.js";
import { hold, isHeld, onWaiting } from "./reading.js";
import { here, go, to } from "./router.js";
import { chooseTenant, isForAll, session, signOut } from "./session.js";
import { VIEWS } from "./views/all.js";

const top = document.getElementById("top");
const shown = { view: null, figures: null, waiting: 0, stop: null };

export function frame(view) {
  shown.view = view;
  document.body.classList.toggle("alone", view === null);
  if (view === null) { shown.stop?.(); shown.stop = null; shown.figures = null; }
  else shown.stop ??= follow("/streams/dashboard", ({ event, data }) => { if (event === "dashboard.metrics") { shown.figures = data; draw(); } });
  draw();
}

onStanding(() => draw());
onWaiting((size) => { if (size !== shown.waiting) { shown.waiting = size; draw(); } });
setInterval(() => { if (standing().word === "lost") draw(); }, 1000);

function draw() {
  patch(top, h("header", null, shown.view === null ? brand() : [brand(), menu(), foot()]));
}

const brand = () => h("a.brand", { href: "/console/", "data-key": "brand" }, h("img", { src: "/console/assets/icon.svg", alt: "", width: 22, height: 22 }), "DocsToKG", h("span.quiet", null, " console"));

function menu() {
  return h("nav", { "aria-label": "Views", "data-key": "nav" }, h("ul", null, VIEWS.filter((view) => !view.hidden).map((view) => {
    const sign = view.sign && shown.figures ? view.sign(shown.figures) : null;
    const mine = shown.view === view.name || shown.view === view.child;
    return h("li", { "data-key": view.name }, h("a", { href: to(view.name), "aria-current": mine ? "page" : null },
      view.title, sign ? h("span.sign", { class: sign.kind, title: sign.words }, count(sign.n), h("span.hidden", null, ` ${sign.words}`)) : null));
  })));
}

function foot() {
  return h("div.foot", { "data-key": "foot" }, connection(), h("div.switches", null, theme(), zone(), pauseSwitch()), person());
}

function connection() {
  const now = standing();
  const words = { live: "Live", connecting: "Connecting…", idle: "Not live", lost: "Connection lost" }[now.word];
  const hint = shown.waiting ? "Paused while you read" : words;
  return h("div.connection", { class: shown.waiting ? "waits" : now.word, role: "status" }, h("i", { class: "lamp" }), h("span", null, hint),
    now.word === "lost" ? h("span.quiet", null, ` ${lasting((Date.now() - now.since) / 1000)}; what you see may be old. Trying again.`) : null);
}

function theme() {
  const set = document.documentElement.dataset.theme;
  const dark = set ? set === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  return h("button.small", { type: "button", "aria-label": dark ? "Switch to light colours" : "Switch to dark colours", onclick: () => {
    const next = dark ? "light" : "dark";
    document.documentElement.dataset.theme = next;
    try { localStorage.setItem("docstokg.theme", next); } catch { /* not kept then */ }
    draw();
  } }, dark ? "Light" : "Dark");
}

function zone() {
  const next = zoneName() === "utc" ? "local" : "utc";
  return h("button.small", { type: "button", "aria-label": `Show times in ${next === "utc" ? "UTC" : "local time"}`, onclick: () => { setZone(next); go(location.pathname + location.search); } },
    zoneName() === "utc" ? "UTC" : "Local");
}

function pauseSwitch() {
  const held = isHeld();
  return h("button.small", { type: "button", "aria-pressed": held ? "true" : "false", "aria-label": "Hold live updates", onclick: () => { hold(!held); draw(); } }, held ? "Held" : "Hold");
}

function person() {
  const who = session.who;
  if (!who) return null;
  const several = who.tenants.length > 1 || isForAll(who);
  return h("details.person", { "data-key": "person" }, h("summary", null, h("span.tenant", null, who.tenant), h("span.quiet", null, ` ${who.subject}`)),
    h("div.person-more", null,
      h("p", null, "Scopes: ", who.scopes.length ? who.scopes.join(", ") : "none"),
      several ? h("form", { onsubmit: (event) => { event.preventDefault(); change(new FormData(event.target).get("tenant")); } },
        h("label.field", null, h("span", null, "Tenant"), h("input", { name: "tenant", value: who.tenant, pattern: "[A-Za-z0-9][A-Za-z0-9._\\-]{0,127}", required: true })),
        h("button.small", { type: "submit" }, "Look at this tenant")) : null,
      h("button.small", { type: "button", onclick: () => { signOut(); location.assign("/console/"); } }, "Forget the token")));
}

function change(name) {
  chooseTenant(String(name).trim());
  session.who = { ...session.who, tenant: String(name).trim() };
  shown.figures = null;
  reconnect();
  go(to(here().view));
}
