// The address says what is shown: /console/VIEW/... with a query. Reloading or sharing it shows the same.

const BASE = "/console";
let render = () => {};

export function start(then) {
  render = then;
  addEventListener("popstate", () => render(here()));
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href]");
    if (!link || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || link.target) return;
    const href = link.getAttribute("href");
    if (href.startsWith(BASE + "/") && !href.startsWith(BASE + "/assets")) {
      event.preventDefault();
      go(href);
    }
  });
  render(here());
}

export function here() {
  const parts = location.pathname.slice(BASE.length).split("/").filter(Boolean).map(decode);
  return { view: parts[0] ?? "overview", parts: parts.slice(1), query: new URLSearchParams(location.search) };
}
function decode(text) {
  try { return decodeURIComponent(text); } catch { return text; }
}

export const to = (...parts) => `${BASE}/${parts.map(encodeURIComponent).join("/")}`;
export function toWith(parts, query) {
  const words = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    for (const one of Array.isArray(value) ? value : [value]) if (one !== null && one !== undefined && one !== "") words.append(name, one);
  }
  const text = words.toString();
  return to(...parts) + (text ? `?${text}` : "");
}

export function go(href) {
  if (href !== location.pathname + location.search) history.pushState(null, "", href);
  render(here());
  scrollTo(0, 0);
}
/** The same view with another query: no new page, but a new address. */
export function amend(href) {
  history.replaceState(null, "", href);
}
