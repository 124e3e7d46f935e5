// Numbers, times and names as people read them.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

export const count = (n) => (n === null || n === undefined ? "–" : whole.format(n));
export const brief = (n) => (n < 10000 ? whole.format(n) : short.format(n));
export const percent = (share) => `${(share * 100).toFixed(share > 0 && share < 0.1 ? 1 : 0)} %`;

export function lasting(seconds) {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return "–";
  const s = Math.max(0, seconds);
  if (s < 1) return `${Math.round(s * 1000)} ms`;
  if (s < 60) return `${s < 10 ? s.toFixed(1) : Math.round(s)} s`;
  const minutes = Math.round(s / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.round(s / 3600);
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return hours < 48 ? `${hours} h` : `${Math.round(s / 86400)} days`;
}

export function size(bytes) {
  if (bytes === null || bytes === undefined) return "–";
  const steps = ["B", "kB", "MB", "GB", "TB"];
  let n = bytes, step = 0;
  while (n >= 1000 && step < steps.length - 1) { n /= 1000; step += 1; }
  return `${step === 0 ? n : n.toFixed(1)} ${steps[step]}`;
}

let zone = "local";
try { zone = localStorage.getItem("docstokg.zone") ?? "local"; } catch { /* storage is forbidden */ }
export const zoneName = () => zone;
export function setZone(name) {
  zone = name;
  try { localStorage.setItem("docstokg.zone", name); } catch { /* not kept then */ }
}

const made = {};
function words(kind, options) {
  const key = kind + zone;
  made[key] ??= new Intl.DateTimeFormat("en-GB", { ...options, ...(zone === "utc" ? { timeZone: "UTC" } : {}) });
  return made[key];
}

export function clock(iso) {
  return iso ? words("clock", { hour: "2-digit", minute: "2-digit", second: "2-digit" }).format(new Date(iso)) : "–";
}
export function minute(iso) {
  return iso ? words("minute", { hour: "2-digit", minute: "2-digit" }).format(new Date(iso)) : "–";
}
export function moment(iso) {
  if (!iso) return "–";
  const day = words("day", { day: "2-digit", month: "short" }).format(new Date(iso));
  const today = words("day", { day: "2-digit", month: "short" }).format(new Date());
  return day === today ? clock(iso) : `${day} ${clock(iso)}`;
}
export const since = (iso, now = Date.now()) => (iso ? (now - Date.parse(iso)) / 1000 : null);
export function ago(iso, now) {
  const s = since(iso, now);
  if (s === null) return "–";
  return s < -1 ? `in ${lasting(-s)}` : s < 2 ? "now" : `${lasting(s)} ago`;
}

/** Moments inside a sentence of the service, as they are written everywhere else. */
export const localTimes = (text) => String(text).replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g, (iso) => moment(iso));

export const STATUSES = ["pending", "queued", "leased", "succeeded", "failed", "canceled", "timed_out"];
export const statusWord = (status) => ({ leased: "running", timed_out: "timed out" })[status] ?? status;
export const shortId = (text) => (text && text.length > 22 ? `${text.slice(0, 12)}…${text.slice(-6)}` : text ?? "–");
