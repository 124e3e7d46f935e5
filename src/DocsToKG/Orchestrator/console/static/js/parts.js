// The pieces that every view is made of.

import { h } from "./dom.js";
import { ago, lasting, moment, since, statusWord } from "./format.js";

export const badge = (status, words = statusWord(status)) => h("span.badge", { class: `is-${String(status).toLowerCase()}` }, words);
/** A breaker's state: lists say HalfOpen, transitions and hosts half-open. */
export function breakerBadge(state) {
  const words = state === "HalfOpen" ? "half open" : String(state).toLowerCase().replace("-", " ");
  return badge(words.replace(" ", "-"), words);
}
export const quiet = (...words) => h("span.quiet", null, ...words);
export const mono = (text, title) => h("span.mono", { title: title ?? null }, text ?? "–");

export function panel(title, ...content) {
  const more = content[0] && content[0].note !== undefined ? content.shift() : {};
  return h("section.panel", { class: more.class, "data-key": more.key ?? title, "aria-label": title },
    h("header.panel-head", null, h("h2", null, title), more.note ? quiet(more.note) : null, more.side ?? null), ...content);
}

/** A table that becomes cards on a narrow screen. columns: [{head, cell, class, narrow}]; rows have a key. */
export function table(label, columns, rows, { key, empty = "Nothing here.", row: rowMore = () => ({}) } = {}) {
  if (!rows.length) return h("p.empty", null, empty);
  return h("div.scroll", { tabindex: "0", role: "region", "aria-label": `${label}: table` },
    h("table", { class: "cards-when-narrow" },
      h("thead", null, h("tr", null, columns.map((column) => h("th", { class: column.class, scope: "col" },
        column.head === "" ? h("span.hidden", null, column.label ?? "Actions") : column.head)))),
      h("tbody", null, rows.map((row) => h("tr", { "data-key": key ? key(row) : null, ...rowMore(row) },
        columns.map((column) => h("td", { class: column.class, title: column.title?.(row) ?? null, "data-head": typeof column.head === "string" ? column.head : "" }, column.cell(row))))))));
}

export function facts(pairs) {
  return h("dl.facts", null, pairs.filter(Boolean).filter(([, value]) => value !== null && value !== undefined && value !== "")
    .map(([name, value]) => h("div", { "data-key": name }, h("dt", null, name), h("dd", null, value))));
}

export function time(iso, { relative = true } = {}) {
  if (!iso) return quiet("–");
  return h("time", { datetime: iso, title: relative ? moment(iso) : ago(iso) }, relative ? ago(iso) : moment(iso));
}
export function until(iso) {
  const left = -since(iso);
  return h("time", { datetime: iso, title: moment(iso) }, left > 0 ? `in ${lasting(left)}, at ${moment(iso)}` : `due since ${moment(iso)}`);
}

export function copyButton(text, label = "Copy") {
  return h("button.small", {
    type: "button", "aria-label": label === "Copy" ? `Copy ${typeof text === "string" ? text.slice(0, 60) : "it"}` : label,
    onclick: async (event) => {
      const button = event.currentTarget;
      const words = typeof text === "function" ? text() : text;
      try { await navigator.clipboard.writeText(words); } catch { fallbackCopy(words); }
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = label; }, 1200);
    },
  }, label);
}
function fallbackCopy(words) {
  const field = h("textarea", { class: "hidden" });
  field.value = words;
  (document.querySelector("dialog[open]") ?? document.body).append(field);
  field.select();
  document.execCommand("copy");
  field.remove();
}

export function note(words, kind = "good") {
  const shown = h("p.note", { class: kind }, words);
  document.getElementById("notes").append(shown);
  setTimeout(() => shown.remove(), kind === "bad" ? 9000 : 5000);
}

export function problem(error, again) {
  return h("div.problem", { role: "alert" },
    h("strong", null, error.status === 403 ? "Your token does not allow this." : error.status === 404 ? "There is no such thing." : "That did not work."),
    h("p", null, error.message, error.trace ? quiet(` Trace ${error.trace}`) : null),
    again ? h("button", { type: "button", onclick: again }, "Try again") : null);
}

export function pager({ first, next, onFirst, onNext, words }) {
  return h("nav.pager", { "aria-label": "Pages" },
    h("button", { type: "button", disabled: !first, onclick: onFirst }, "« Newest"),
    quiet(words ?? ""),
    h("button", { type: "button", disabled: !next, onclick: onNext }, "Older »"));
}

export const heading = (title, words, ...side) =>
  h("div.heading", null, h("div", null, h("h1", null, title), words ? h("p.quiet", null, words) : null), h("div.side", null, side));

export const pretty = (value, label) => h("pre.code", { tabindex: "0", role: "region", "aria-label": `${label}: text` }, JSON.stringify(value, null, 2));
