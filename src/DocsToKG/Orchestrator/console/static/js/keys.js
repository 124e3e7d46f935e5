// The keyboard: / searches, g and a letter goes, j and k walk down and up a list, ? tells all this.

import { h } from "./dom.js";
import { go, to } from "./router.js";

const PLACES = { o: "overview", j: "jobs", s: "sources", w: "workers", q: "quotas", b: "breakers", i: "incidents", r: "runs", f: "feed" };
let going = 0;

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (/^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName ?? "")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (document.body.classList.contains("alone")) return;
  if (Date.now() - going < 1200 && PLACES[event.key]) { going = 0; event.preventDefault(); go(to(PLACES[event.key])); return; }
  if (event.key === "g") going = Date.now();
  else if (event.key === "/") search(event);
  else if (event.key === "j" || event.key === "k") walk(event);
  else if (event.key === "?") tell();
});

function search(event) {
  const field = document.querySelector("[data-search]");
  event.preventDefault();
  if (field) field.focus();
  else go(to("jobs"));
}

function walk(event) {
  const links = [...document.querySelectorAll("#main tbody tr a[href]:not([tabindex]), #main .feed a")];
  if (!links.length) return;
  event.preventDefault();
  const place = links.indexOf(document.activeElement);
  links[Math.max(0, Math.min(links.length - 1, place + (event.key === "j" ? 1 : -1)))].focus();
}

function tell() {
  const keys = [["/", "search"], ["j, k", "down and up a list; Enter opens"], ["g and o j s w q b i r f", "go to overview, jobs, sources, workers, quotas, breakers, incidents, pack-runs, feed"], ["?", "this"]];
  const dialog = h("dialog", { "aria-label": "Keys" }, h("h2", null, "Keys"), h("dl.facts", null, keys.map(([key, words]) => h("div", null, h("dt", null, h("code", null, key)), h("dd", null, words)))),
    h("div.buttons", null, h("button", { type: "button", onclick: () => { dialog.close(); dialog.remove(); } }, "Close")));
  dialog.addEventListener("cancel", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}
