// Elements from data, and one tree made like another. Data becomes text or an attribute, never markup.

const SVG = "http://www.w3.org/2000/svg";
const handlers = new WeakMap();

/** h("a.quiet", {href, onclick}, child, [children], "text"): null, undefined and false children are left out. */
export function h(what, attributes, ...children) {
  const [tag, ...classes] = what.split(".");
  return fill(document.createElement(tag), classes, attributes, children);
}

/** The same for SVG. */
export function s(what, attributes, ...children) {
  const [tag, ...classes] = what.split(".");
  return fill(document.createElementNS(SVG, tag), classes, attributes, children);
}

function fill(element, classes, attributes, children) {
  if (attributes instanceof Node || typeof attributes !== "object" || Array.isArray(attributes)) {
    children = [attributes, ...children];
    attributes = null;
  }
  if (classes.length) element.setAttribute("class", classes.join(" "));
  for (const [name, value] of Object.entries(attributes ?? {})) put(element, name, value);
  add(element, children);
  return element;
}

function put(element, name, value) {
  if (value === null || value === undefined || value === false) return;
  if (name.startsWith("on")) {
    listen(element, name.slice(2), value);
  } else if (name === "class") {
    element.setAttribute("class", [element.getAttribute("class"), value].filter(Boolean).join(" "));
  } else if (name === "href" && !safe(value)) {
    element.setAttribute("data-refused", "href");
  } else {
    element.setAttribute(name, value === true ? "" : String(value));
  }
}

/** Only places of this site, and pages of others by their own protocol: never javascript: or data:. */
function safe(value) {
  return /^(\/(?!\/)|#|\?|https?:\/\/)/i.test(String(value));
}

function listen(element, name, handler) {
  let mine = handlers.get(element);
  if (!mine) handlers.set(element, (mine = {}));
  if (!(name in mine)) element.addEventListener(name, (event) => handlers.get(element)[name]?.call(element, event));
  mine[name] = handler;
}

function add(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false || child === true) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

/** Make `old`'s children like those of `fresh`: what is the same stays, with its focus, scroll and selection. */
export function patch(old, fresh) {
  const left = new Map();
  for (const child of old.childNodes) if (child.dataset?.key) left.set(child.dataset.key, child);
  let place = old.firstChild;
  for (const wanted of [...fresh.childNodes]) {
    const kept = wanted.dataset?.key ? left.get(wanted.dataset.key) : same(place, wanted) && !place.dataset?.key ? place : null;
    if (!kept) {
      old.insertBefore(wanted, place);
      continue;
    }
    if (kept === place) place = place.nextSibling;
    else old.insertBefore(kept, place);
    renew(kept, wanted);
  }
  while (place) {
    const next = place.nextSibling;
    place.remove();
    place = next;
  }
}

function same(one, other) {
  return one && one.nodeType === other.nodeType && one.nodeName === other.nodeName && !other.dataset?.key;
}

function renew(kept, wanted) {
  if (kept.nodeType === Node.TEXT_NODE) {
    if (kept.data !== wanted.data) kept.data = wanted.data;
    return;
  }
  for (const { name } of [...kept.attributes]) {
    const stays = wanted.hasAttribute(name) || (name === "open" && kept.nodeName === "DETAILS");
    if (!stays) kept.removeAttribute(name);
  }
  for (const { name, value } of wanted.attributes) if (kept.getAttribute(name) !== value) kept.setAttribute(name, value);
  const old = handlers.get(kept) ?? {};
  const now = handlers.get(wanted) ?? {};
  for (const name of Object.keys(old)) if (!(name in now)) old[name] = null;
  for (const [name, handler] of Object.entries(now)) listen(kept, name, handler);
  if (kept.nodeName === "INPUT" || kept.nodeName === "SELECT" || kept.nodeName === "TEXTAREA") settle(kept, wanted);
  if (!kept.hasAttribute("data-own")) patch(kept, wanted);
}

/** A field that somebody is typing in keeps what was typed. */
function settle(kept, wanted) {
  if (kept.type === "checkbox" || kept.type === "radio") kept.checked = wanted.checked;
  else if (document.activeElement !== kept && kept.nodeName !== "SELECT") kept.value = wanted.value;
}
