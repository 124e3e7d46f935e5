// The public API, asked with the token of this tab. Nothing here knows a view.

import { session } from "./session.js";

export const HOME = "/api/v1/orchestrator";

export class Refused extends Error {
  constructor(status, code, message, trace) {
    super(message);
    Object.assign(this, { status, code, trace });
  }
}

let unknown = () => {};
/** Called when the service no longer knows the token. */
export const onUnknown = (then) => { unknown = then; };

export function headers(more = {}) {
  const tenant = session.tenant();
  return { Authorization: `Bearer ${session.token() ?? ""}`, ...(tenant ? { "X-Tenant": tenant } : {}), ...more };
}

export function address(path, query = {}) {
  const words = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== null && one !== undefined && one !== "") words.append(name, one);
    }
  }
  const text = words.toString();
  return HOME + path + (text ? `?${text}` : "");
}

export const get = (path, query, more) => call("GET", path, { query, ...more });
export const send = (method, path, body, more) => call(method, path, { body, ...more });

async function call(method, path, { query, body, signal, extra } = {}) {
  const said = body === undefined ? {} : { "Content-Type": "application/json" };
  let answer;
  try {
    answer = await fetch(address(path, query), {
      method, signal, headers: headers({ ...said, ...extra }), cache: "no-store", redirect: "error",
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, "AWAY", "The service cannot be reached.", null);
  }
  const found = answer.status === 204 ? null : await answer.json().catch(() => null);
  if (answer.ok) return found;
  const told = found?.error ?? {};
  if (answer.status === 401) unknown();
  throw new Refused(answer.status, told.code ?? "UNKNOWN", told.message ?? `The service answered ${answer.status}.`, told.trace_id);
}
