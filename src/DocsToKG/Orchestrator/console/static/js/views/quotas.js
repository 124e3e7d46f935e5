// How much each tenant may do: what counts now, the pools and who gets what, and what a change would do before it is made.

import { actionButton, QUOTA } from "../actions.js";
import { gauge } from "../charts.js";
import { h } from "../dom.js";
import { send } from "../api.js";
import { count } from "../format.js";
import { badge, facts, heading, panel, quiet, table, time, until } from "../parts.js";
import { lacks } from "../session.js";

const STRATEGIES = ["Equal", "Proportional", "Priority", "ReservedWithFairShare", "Fixed"];

export function quotas(page) {
  const state = { status: null, quotas: [], policies: [], summary: null };
  const draw = () => content(state, load);
  const load = async () => {
    try {
      const everyone = lacks(["orch:read"], true) === null;
      const [status, mine, policies, summary] = await Promise.all([
        page.get("/quota-governance/status"), page.get("/quotas"), page.get("/quota-governance/policies"), everyone ? page.get("/quota-governance/summary") : null,
      ]);
      Object.assign(state, { status, quotas: mine.quotas, policies: policies.policies, summary: summary?.policies ?? null });
      page.renew(draw);
    } catch (error) { if (!state.status) page.fail(error, load); }
  };
  page.follow("/streams/dashboard", page.gently(2000, load));
  load();
}

function content(state, load) {
  return [
    heading("Quotas", "The smaller of quota and share counts, from the next lease on.", quotaButton(null, load), policyButton(null, load)),
    h("div.grid", { "data-key": "grid" },
      panel("What counts now", { note: `tenant ${state.status.tenant}`, class: "full across" }, now(state.status)),
      panel("Quotas", { note: "of this tenant, and of every tenant (*)", class: "full" }, quotaTable(state, load)),
      panel("Policies", { note: "how a pool is shared among tenants; the highest priority first", class: "full" }, policyTable(state, load)),
      panel("Allocation now", { note: state.summary ? "who gets what of each pool" : "seen by tokens for every tenant only", class: "full" }, allocation(state))),
  ];
}

function now(status) {
  const { allocation: share } = status;
  return [
    status.effective === null ? h("p", null, "No limit but the workers.") : gauge("Jobs at once", status.active, status.effective),
    facts([
      ["At work", count(status.active)], ["May run at once", status.effective === null ? "no limit" : count(status.effective)],
      ["Share of the pool", share.share === null ? null : `${count(share.share)} of ${count(share.totalCapacity)} (${share.strategy})`],
      ["Burst up to", share.burstLimit], ["Tenants that share", share.activeTenants || null], ["Held from the pool", status.held || null],
      ["May still start", status.startsLeft === null ? null : `${count(status.startsLeft)} this hour`], ["Next start", status.nextStartAt ? until(status.nextStartAt) : null],
    ]),
  ];
}

function quotaTable(state, load) {
  return table("Quotas", [
    { head: "Job type", cell: (one) => (one.jobType === "*" ? "every type" : one.jobType) },
    { head: "Tenant", cell: (one) => (one.tenant === "*" ? "every tenant" : one.tenant) },
    { head: "At once", class: "n", cell: (one) => count(one.maxActive) },
    { head: "Per hour", class: "n", cell: (one) => count(one.maxPerHour) },
    { head: "Burst", class: "n", cell: (one) => count(one.burst) },
    { head: "Why", class: "w", cell: (one) => [one.quotaReason ?? quiet("–"), quiet(` ${one.actor}${one.quotaTicket ? `, ${one.quotaTicket}` : ""}`)] },
    { head: "Changed", class: "n", cell: (one) => time(one.updatedAt) },
    { head: "", cell: (one) => h("div.buttons", null, quotaButton(one, load), removeQuota(one, load)) },
  ], state.quotas, { key: (one) => `${one.tenant}/${one.jobType}`, empty: "No quota is set: only shares and workers limit this tenant." });
}

const numbers = (values, names) => Object.fromEntries(names.filter((name) => values[name] !== "").map((name) => [name, Number(values[name])]));

function quotaButton(one, load) {
  const every = one?.tenant === "*";
  const path = (values) => `/quotas/${encodeURIComponent(one?.jobType ?? (values.jobType.trim() || "*"))}`;
  const body = (values) => numbers(values, ["maxActive", "maxPerHour", "burst"]);
  return actionButton({
    title: one ? `Change the quota of ${one.jobType === "*" ? "every type" : one.jobType}` : "Set a quota", verb: "Save", scopes: QUOTA, everyone: every, method: "PUT",
    words: "Counts from the next lease on, on every instance. Jobs that run go on.",
    fields: [
      one ? null : { name: "jobType", label: "Job type", value: "*", hint: "* means every type together." },
      { name: "maxActive", label: "At work at once", type: "number", min: 0, value: String(one?.maxActive ?? 100), required: true },
      { name: "maxPerHour", label: "Started in an hour", type: "number", min: 0, value: String(one?.maxPerHour ?? 1000), required: true },
      { name: "burst", label: "Burst", type: "number", min: 0, value: String(one?.burst ?? 10), required: true },
    ].filter(Boolean),
    path: (values) => path(values) + (every ? "?everyTenant=true" : ""), body, done: load,
    extra: one ? { "If-Match": `"v${one.version}"` } : undefined,
    preview: async (sent, values) => quotaPreview(await send("POST", `${path(values)}/preview`, body(values))),
  }, one ? "Change…" : "Set a quota…", { key: one ? null : "quota" });
}
function quotaPreview(found) {
  const words = (n) => (n === null ? "no limit" : count(n));
  return h("p", null, `May run at once: ${words(found.before)} → `, h("strong", null, words(found.after)), `. At work now: ${count(found.active)}`, found.overBy ? h("span.bad", null, `, ${count(found.overBy)} more than that; they may end, nothing new starts.`) : ".");
}

function removeQuota(one, load) {
  return actionButton({
    title: `Remove the quota of ${one.jobType}`, verb: "Remove", danger: true, scopes: QUOTA, everyone: one.tenant === "*", method: "DELETE", words: "What stands behind it counts then: a quota of every tenant, a share, or nothing.",
    path: `/quotas/${encodeURIComponent(one.jobType)}${one.tenant === "*" ? "?everyTenant=true" : ""}`, done: load,
  }, "Remove…");
}

function policyTable(state, load) {
  return table("Policies", [
    { head: "Policy", class: "w", cell: (one) => [one.name, one.enabled ? null : [" ", badge("still", "off")]] },
    { head: "For", cell: (one) => one.jobType ?? "every type" },
    { head: "Shares", cell: (one) => one.strategy },
    { head: "Capacity", class: "n", cell: (one) => count(one.totalCapacity) },
    { head: "Each", class: "n", cell: (one) => `${count(one.minimumPerTenant)} – ${one.maximumPerTenant === null ? "all" : count(one.maximumPerTenant)}` },
    { head: "Reserved", class: "n", cell: (one) => count(one.reservedCapacity) },
    { head: "Burst", class: "n", cell: (one) => (one.allowBurst ? `× ${one.burstMultiplier}` : quiet("no")) },
    { head: "Priority", class: "n", cell: (one) => one.priority },
    { head: "Why", class: "w", cell: (one) => [one.quotaReason ?? quiet("–"), one.quotaTicket ? quiet(` ${one.quotaTicket}`) : null] },
    { head: "", cell: (one) => h("div.buttons", null, policyButton(one, load), removePolicy(one, load)) },
  ], state.policies, { key: (one) => one.policyId, empty: "No policy: nothing is shared among tenants, only quotas count." });
}

function policyButton(one, load) {
  const rules = (values) => ({
    ...(values.name.trim() ? { name: values.name.trim() } : {}), strategy: values.strategy, allowBurst: values.allowBurst, enabled: values.enabled, jobType: values.jobType.trim() || null,
    ...numbers(values, ["totalCapacity", "minimumPerTenant", "maximumPerTenant", "reservedCapacity", "burstMultiplier", "priority"]), ...(values.maximumPerTenant === "" ? { maximumPerTenant: null } : {}),
  });
  const number = (name, label, value, more = {}) => ({ name, label, type: "number", value: value === null || value === undefined ? "" : String(value), ...more });
  return actionButton({
    title: one ? `Change the policy ${one.name}` : "Make a policy", verb: "Save", scopes: QUOTA, everyone: true, method: one ? "PUT" : "POST",
    words: "See what it would do for each tenant below before you save it.",
    fields: [
      { name: "name", label: "Name", value: one?.name ?? "", required: true }, { name: "strategy", label: "How it shares", type: "select", options: STRATEGIES, value: one?.strategy ?? "Equal" },
      number("totalCapacity", "Total capacity", one?.totalCapacity ?? 100, { min: 0, required: true }), number("minimumPerTenant", "At least for each tenant", one?.minimumPerTenant ?? 1, { min: 0 }),
      number("maximumPerTenant", "At most for each tenant", one?.maximumPerTenant, { min: 0, hint: "Empty: no upper bound." }), number("reservedCapacity", "Reserved for high priority", one?.reservedCapacity ?? 0, { min: 0 }),
      { name: "jobType", label: "Job type", value: one?.jobType ?? "", hint: "Empty: every type." }, number("priority", "Priority of the policy", one?.priority ?? 0),
      { name: "allowBurst", label: "Allow more while there is room", type: "checkbox", value: one?.allowBurst ?? false }, number("burstMultiplier", "Burst factor", one?.burstMultiplier ?? 1.5, { min: 1, step: "0.1" }),
      { name: "enabled", label: "In force", type: "checkbox", value: one?.enabled ?? true },
    ],
    path: one ? `/quota-governance/policies/${encodeURIComponent(one.policyId)}` : "/quota-governance/policies", body: rules, done: load,
    extra: one ? { "If-Match": `"v${one.version}"` } : undefined,
    preview: async (sent, values) => policyPreview(await send("POST", "/quota-governance/preview", { ...rules(values), ...(one ? { replaces: one.policyId } : {}) })),
  }, one ? "Change…" : "New policy…", { key: one ? null : "policy" });
}

function policyPreview(found) {
  const rows = found.tenants.slice(0, 12);
  return [
    h("p", null, h("strong", null, "What if? "), found.governs ? `${count(found.allocated)} of ${count(found.totalCapacity)} would be given out.` : h("span.bad", null, `It would not count: ${found.governedBy} has a higher priority.`)),
    rows.length ? table("Shares before and after", [
      { head: "Tenant", cell: (row) => row.tenant }, { head: "Now", class: "n", cell: (row) => (row.before === null ? quiet("none") : count(row.before)) },
      { head: "Then", class: "n", cell: (row) => h("strong", null, count(row.after)) }, { head: "At work", class: "n", cell: (row) => (row.overBy ? h("span.bad", null, `${count(row.active)} (${row.overBy} over)`) : count(row.active)) },
    ], rows, { key: (row) => row.tenant }) : h("p.quiet", null, "No tenant has work at this moment."),
  ];
}

function removePolicy(one, load) {
  return actionButton({
    title: `Remove the policy ${one.name}`, verb: "Remove", danger: true, scopes: QUOTA, everyone: true, method: "DELETE", words: "The pool is shared no longer; the next policy by priority counts, or none.",
    path: `/quota-governance/policies/${encodeURIComponent(one.policyId)}`, done: load,
  }, "Remove…");
}

function allocation(state) {
  if (!state.summary) return h("p.empty", null, "Your token is for some tenants only; their shares of all pools are not shown. What counts for you stands above.");
  if (!state.summary.length) return h("p.empty", null, "No policy is in force.");
  return state.summary.map((pool) => h("div", { "data-key": pool.policyId }, h("h3", null, `${pool.name}: ${count(pool.allocated)} of ${count(pool.totalCapacity)} given out, ${count(pool.active)} at work`),
    table(`Shares of ${pool.name}`, [
      { head: "Tenant", cell: (row) => row.tenant }, { head: "Share", class: "n", cell: (row) => count(row.share) },
      { head: "Used", cell: (row) => gauge(`Use by ${row.tenant}`, row.active, row.share) }, { head: "Held", class: "n", cell: (row) => count(row.held) }, { head: "Burst", class: "n", cell: (row) => count(row.burstUsed) },
    ], pool.tenants, { key: (row) => row.tenant, empty: "No tenant has work now." })));
}

