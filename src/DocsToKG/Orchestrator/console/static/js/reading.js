// Somebody who selects text, scrolls or presses a button is not to have the page change under the hand.

const REST_MS = 900;
const waiting = new Map();
const watchers = new Set();
let scrolledAt = -Infinity;
let pressed = false;
let timer = null;
let held = false; // by the reader's own wish

export const isHeld = () => held;
export function hold(on) { held = on; if (!on) release(); tell(); }

export function isReading() {
  const chosen = document.getSelection();
  const selects = chosen && !chosen.isCollapsed && String(chosen).length > 0 && !inField();
  return held || pressed || selects || performance.now() - scrolledAt < REST_MS;
}
const inField = () => /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement?.tagName ?? "");

/** Run `change` now, or when the reader is done; of several with the same key only the last. */
export function whenFree(key, change) {
  if (!isReading()) { waiting.delete(key); change(); return; }
  waiting.set(key, change);
  tell();
  timer ??= setInterval(release, 250);
}
export const forget = (key) => { waiting.delete(key); tell(); };
export function onWaiting(then) { watchers.add(then); }
const tell = () => watchers.forEach((then) => then(waiting.size, held));

function release() {
  if (isReading()) return;
  clearInterval(timer);
  timer = null;
  const changes = [...waiting.values()];
  waiting.clear();
  changes.forEach((change) => change());
  tell();
}

addEventListener("scroll", () => { scrolledAt = performance.now(); }, { capture: true, passive: true });
addEventListener("pointerdown", () => { pressed = true; }, { capture: true, passive: true });
for (const name of ["pointerup", "pointercancel", "blur"]) addEventListener(name, () => { pressed = false; }, { capture: true, passive: true });
