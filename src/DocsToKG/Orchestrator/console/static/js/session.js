// The token and what it allows. Kept in this tab alone; it comes from the address once and is taken out of it.

const KEY = "docstokg.token";
const TENANT = "docstokg.tenant";
let memory = {};

function kept(name) {
  try { return sessionStorage.getItem(name); } catch { return memory[name] ?? null; }
}
function keep(name, value) {
  memory[name] = value;
  try {
    if (value === null) sessionStorage.removeItem(name);
    else sessionStorage.setItem(name, value);
  } catch { /* this page alone knows it then */ }
}

export const session = { who: null, token: () => kept(KEY), tenant: () => kept(TENANT) };

export function takeFromAddress() {
  const found = new URLSearchParams(location.hash.slice(1)).get("token");
  if (!found) return;
  keep(KEY, found);
  keep(TENANT, null);
  history.replaceState(history.state, "", location.pathname + location.search);
}

export function signIn(token) {
  keep(KEY, token);
  keep(TENANT, null);
  session.who = null;
}
export function signOut() {
  keep(KEY, null);
  keep(TENANT, null);
  session.who = null;
}
export const chooseTenant = (name) => keep(TENANT, name);

/** Whether the token is for every tenant. */
export const isForAll = (who = session.who) => Boolean(who?.tenants.includes("*"));

/** Null when the caller may do it; otherwise why not. */
export function lacks(scopes, everyone = false) {
  const who = session.who;
  if (!who) return "Sign in first.";
  const missing = scopes.filter((scope) => !who.scopes.includes(scope));
  if (missing.length) return `Your token lacks the scope ${missing.join(" and ")}.`;
  if (everyone && !isForAll(who)) return "This concerns every tenant; your token is for some only.";
  return null;
}
