// Before there is a token or a tenant: what to do, in the order in which to do it.

import { h } from "../dom.js";
import { chooseTenant, isForAll, signIn } from "../session.js";

export function welcome() {
  return h("div.welcome", null,
    h("h1", null, "Open the console"),
    h("p", null, "This page shows the jobs of a ledger: what runs, why something waits, what failed. It asks for a token, because what you may see and do depends on it."),
    h("form", { onsubmit: (event) => { event.preventDefault(); signIn(String(new FormData(event.target).get("token")).trim()); location.reload(); } },
      h("label.field", null, h("span", null, "Token"), h("input", { name: "token", type: "password", required: true, autocomplete: "off", spellcheck: "false", placeholder: "dtk_…" })),
      h("button.primary", { type: "submit" }, "Open")),
    h("h2", null, "Where do I get one?"),
    h("dl.steps", null,
      h("dt", null, "You just started the service"), h("dd", null, "Its first start printed a line with ", h("code", null, "token dtk_…"), " and an address that opens this page with it."),
      h("dt", null, "You look after the service"), h("dd", null, "Make one that can read, or read and act:", h("pre.code", null, "docstokg-orchestrator token new NAME --scope orch:read\ndocstokg-orchestrator token new NAME --scope orch:read --scope orch:operate")),
      h("dt", null, "Somebody else does"), h("dd", null, "Ask them for a token of your tenant with ", h("code", null, "orch:read"), "; a signed token (JWT) of your organisation works too."),
      h("dt", null, "You only want to watch one run on this machine"), h("dd", null, h("pre.code", null, "content pull references.bib --out review --console"))),
    h("p.quiet", null, "The token stays in this tab and is forgotten when it is closed."));
}

export function chooseTenantPage(who, then) {
  const named = who.tenants.filter((name) => name !== "*");
  const choose = (name) => { chooseTenant(name); then(); };
  return h("div.welcome", null,
    h("h1", null, "Whose jobs?"),
    h("p", null, `Your token (${who.subject}) is for several tenants. Choose one; you can change it at any time.`),
    h("div.buttons", null, named.map((name) => h("button", { type: "button", onclick: () => choose(name) }, name))),
    isForAll(who) ? h("form", { onsubmit: (event) => { event.preventDefault(); choose(String(new FormData(event.target).get("tenant")).trim()); } },
      h("label.field", null, h("span", null, "Tenant"), h("input", { name: "tenant", required: true, value: "default" })),
      h("button.primary", { type: "submit" }, "Look")) : null);
}

/** A ledger that holds no job yet. */
export function firstRun() {
  return h("section.panel.first", { "data-key": "first" },
    h("h2", null, "This ledger holds no jobs yet"),
    h("p", null, "Nothing is wrong. Put some work on it, and this page fills by itself:"),
    h("pre.code", null, "# papers by identifier\ncontentdownload queue enqueue 10.1371/journal.pone.0000308\ncontentdownload queue run\n\n# or over HTTP\ncurl -X POST " + location.origin + "/api/jobs -H \"Authorization: Bearer $DOCSTOKG_TOKEN\" \\\n  -H 'Content-Type: application/json' -d '{\"payload\": {\"doi\": \"10.1371/journal.pone.0000308\"}}'"),
    h("p.quiet", null, "You expected jobs here? Look whether the service opened the right ledger (", h("code", null, "serve --ledger PATH"), ") and whether you look at the right tenant."));
}
