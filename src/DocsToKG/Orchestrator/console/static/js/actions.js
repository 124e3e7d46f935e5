// What an operator does: one dialog for every action, with its reason, its ticket and the same thing as a command.

import { address, send } from "./api.js";
import { h, patch } from "./dom.js";
import { copyButton, note } from "./parts.js";
import { lacks, session } from "./session.js";

const OPERATE = ["orch:operate"];
export const QUOTA = ["orch:quota"];

/**
 * action: {title, words, verb, method, path, body(values), fields, scopes, everyone, danger, typed, preview(values),
 *          once, run(values), done(answer)}. A field: {name, label, type, value, options, required, hint}.
 */
export function actionButton(action, label = action.verb, more = {}) {
  const why = lacks(action.scopes ?? OPERATE, action.everyone);
  const stop = why ?? action.refused ?? null;
  return h("button", {
    type: "button", class: [action.danger ? "danger" : "", more.class ?? ""].join(" ").trim() || null, "data-key": more.key ?? null,
    "aria-disabled": stop ? "true" : null, title: stop ?? action.words ?? null, "aria-label": more.label ?? null,
    onclick: () => (stop ? note(stop, "bad") : ask(action)),
  }, label);
}

export function ask(action) {
  const values = Object.fromEntries((action.fields ?? []).map((field) => [field.name, field.value ?? (field.type === "checkbox" ? false : "")]));
  Object.assign(values, { reason: "", ticket: "" });
  const state = { busy: false, error: null, preview: null, asked: null };
  const dialog = h("dialog.action", { "aria-labelledby": "action-title" });
  document.body.append(dialog);

  const change = () => { show(); if (action.preview) preview(); };
  const close = () => { clearTimeout(state.timer); dialog.close(); dialog.remove(); };
  const show = () => patch(dialog, h("dialog", null, form(action, values, state, change, submit, close)));

  function preview() {
    clearTimeout(state.timer);
    state.timer = setTimeout(async () => {
      // What does not change with the fields is counted once, so that the number shown is the number meant.
      const asked = action.once ? "once" : JSON.stringify({ ...values, reason: "", ticket: "" });
      if (asked === state.asked) return;
      state.asked = asked;
      try { state.preview = await action.preview(body(action, values), values); } catch (error) { state.preview = h("p.bad", null, error.message); }
      if (dialog.isConnected) show();
    }, 250);
  }

  async function submit(event) {
    event.preventDefault();
    if (state.busy) return;
    Object.assign(state, { busy: true, error: null });
    show();
    try {
      const answer = action.run ? await action.run(body(action, values), values) : await send(action.method ?? "POST", place(action, values), body(action, values), { extra: action.extra });
      close();
      note(action.said ? action.said(answer) : `${action.verb}: done.`);
      action.done?.(answer, values);
    } catch (error) {
      Object.assign(state, { busy: false, error });
      show();
    }
  }
  dialog.addEventListener("cancel", (event) => { event.preventDefault(); close(); });
  show();
  dialog.showModal();
  dialog.querySelector("input:not([type=checkbox]), select, textarea")?.focus();
  if (action.preview) preview();
}

const place = (action, values) => (typeof action.path === "function" ? action.path(values) : action.path);

function body(action, values) {
  const said = { reason: values.reason.trim(), ...(values.ticket.trim() ? { ticket: values.ticket.trim() } : {}) };
  return { ...(action.body ? action.body(values) : {}), ...said };
}

function form(action, values, state, change, submit, close) {
  const ready = values.reason.trim() && (!action.typed || values.typed === action.typed) && !state.busy;
  return h("form", { method: "dialog", onsubmit: submit },
    h("h2", { id: "action-title" }, action.title),
    action.words ? h("p.quiet", null, action.words) : null,
    h("div.fields", { class: (action.fields ?? []).length > 4 ? "two" : null }, (action.fields ?? []).map((field) => input(field, values, change))),
    state.preview ? h("div.preview", { "aria-live": "polite" }, state.preview) : null,
    input({ name: "reason", label: "Reason", required: true, hint: "Kept in the audit trail.", max: 256 }, values, change),
    input({ name: "ticket", label: "Ticket", hint: "If there is one.", max: 128 }, values, change),
    action.typed ? input({ name: "typed", label: `Type ${action.typed} to confirm`, required: true }, values, change) : null,
    state.error ? h("p.bad", { role: "alert" }, state.error.message) : null,
    h("div.buttons", null,
      h("button", { type: "submit", class: action.danger ? "danger" : "primary", disabled: !ready }, state.busy ? "Working…" : action.verb),
      h("button", { type: "button", onclick: close }, "Cancel"),
      h("span.grow", null),
      copyButton(() => asCurl(action, values), "Copy as curl"),
      copyButton(() => asCli(action, values), "Copy as CLI")));
}

function input(field, values, change) {
  const id = `action-${field.name}`;
  const set = (event) => { values[field.name] = field.type === "checkbox" ? event.target.checked : event.target.value; change(); };
  const shared = { id, name: field.name, oninput: set, required: field.required, "aria-describedby": field.hint ? `${id}-hint` : null };
  let control;
  if (field.type === "select") {
    control = h("select", shared, field.options.map((option) => h("option", { value: option, selected: option === values[field.name] }, option)));
  } else if (field.type === "checkbox") {
    control = h("input", { ...shared, type: "checkbox", checked: Boolean(values[field.name]) });
    control.checked = Boolean(values[field.name]);
  } else {
    control = h("input", { ...shared, type: field.type ?? "text", value: values[field.name] ?? "", maxlength: field.max ?? null, min: field.min, max: field.most, step: field.step, autocomplete: "off", placeholder: field.placeholder });
  }
  return h("label.field", { for: id, class: field.type === "checkbox" ? "check" : null, "data-key": id }, h("span", null, field.label), control,
    field.hint ? h("small.quiet", { id: `${id}-hint` }, field.hint) : null);
}

const quote = (text) => `'${String(text).replaceAll("'", `'\\''`)}'`;

export function asCurl(action, values) {
  const { typed, ...sent } = body(action, values);
  if (!sent.reason) sent.reason = "WHY";
  const tenant = session.tenant();
  const lines = [`curl -X ${action.method ?? "POST"} ${quote(location.origin + address(place(action, values)))}`, `-H "Authorization: Bearer $DOCSTOKG_TOKEN"`];
  if (tenant) lines.push(`-H ${quote(`X-Tenant: ${tenant}`)}`);
  lines.push(`-H 'Content-Type: application/json'`, `-d ${quote(JSON.stringify(sent))}`);
  return lines.join(" \\\n  ");
}

export function asCli(action, values) {
  const { reason, ticket, typed, ...rest } = body(action, values);
  const tenant = session.tenant();
  const words = [`docstokg-orchestrator call ${action.method ?? "POST"} ${quote(place(action, values))}`, `--url ${quote(location.origin)}`];
  if (tenant) words.push(`--tenant ${quote(tenant)}`);
  words.push(`--reason ${quote(reason || "WHY")}`);
  if (ticket) words.push(`--ticket ${quote(ticket)}`);
  if (Object.keys(rest).length) words.push(`--body ${quote(JSON.stringify(rest))}`);
  return words.join(" \\\n  ");
}
