// Live streams (Server-Sent Events by fetch, because they need a header), one connection each however many views listen.
// A stream that breaks comes back with the last event's id, so that nothing is missed; a hidden tab holds none open.

import { address, headers } from "./api.js";

const QUIET_MS = 45_000; // the service gives a sign of life every 15 s
const streams = new Map();
const watchers = new Set();

/** "live", "connecting" or "lost" (with since when), over all streams. */
export function standing() {
  const all = [...streams.values()];
  if (!all.length) return { word: "idle" };
  const lost = all.filter((one) => one.word === "lost");
  if (lost.length) return { word: "lost", since: Math.min(...lost.map((one) => one.lostAt)) };
  return { word: all.every((one) => one.word === "live") ? "live" : "connecting" };
}
export function onStanding(then) {
  watchers.add(then);
  return () => watchers.delete(then);
}
const tell = () => watchers.forEach((then) => then(standing()));

/** Follow a stream until the returned function is called. `then` gets {event, id, data}. */
export function follow(path, then) {
  let stream = streams.get(path);
  if (!stream) {
    stream = { path, listeners: new Set(), last: null, word: "connecting", tries: 0 };
    streams.set(path, stream);
  }
  stream.listeners.add(then);
  if (!stream.stop) open(stream);
  return () => {
    stream.listeners.delete(then);
    if (!stream.listeners.size && streams.get(path) === stream) {
      streams.delete(path);
      stream.stop?.abort();
      clearTimeout(stream.timer);
      tell();
    }
  };
}

function open(stream) {
  if (document.hidden || !stream.listeners.size) return;
  const stop = (stream.stop = new AbortController());
  read(stream, stop).catch(() => { if (stream.stop === stop) lost(stream); });
}

async function read(stream, stop) {
  const resume = stream.last ? { "Last-Event-ID": stream.last } : {};
  const answer = await fetch(address(stream.path), {
    headers: headers({ Accept: "text/event-stream", ...resume }),
    signal: stop.signal, cache: "no-store",
  });
  if (answer.status === 400 || answer.status === 422) stream.last = null; // the place is gone: begin at now
  if (!answer.ok) throw new Error(`answered ${answer.status}`);
  mark(stream, "live");
  stream.tries = 0;
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const alarm = setTimeout(() => stop.abort(), QUIET_MS);
    const { value, done } = await reader.read().finally(() => clearTimeout(alarm));
    if (done) throw new Error("ended");
    text += value;
    const blocks = text.split("\n\n");
    text = blocks.pop();
    for (const block of blocks) take(stream, block);
  }
}

function take(stream, block) {
  const found = { event: "message", id: null, data: "" };
  for (const line of block.split("\n")) {
    const [name, ...rest] = line.split(":");
    if (name in found && name) found[name] = (name === "data" ? found.data : "") + rest.join(":").replace(/^ /, "");
  }
  if (!found.data) return;
  if (found.id) stream.last = found.id;
  let data;
  try { data = JSON.parse(found.data); } catch { return; }
  for (const then of [...stream.listeners]) then({ event: found.event, id: found.id, data });
}

function lost(stream) {
  stream.stop = null;
  if (!stream.listeners.size) return;
  if (document.hidden) { mark(stream, "connecting"); return; }
  if (stream.tries > 0 || stream.word === "live") mark(stream, "lost");
  stream.tries += 1;
  stream.timer = setTimeout(() => open(stream), Math.min(10_000, 400 * 2 ** Math.min(stream.tries, 5)) * (0.7 + Math.random() * 0.6));
}

function mark(stream, word) {
  if (word === "lost" && stream.word !== "lost") stream.lostAt = Date.now();
  const back = stream.word === "lost" && word === "live";
  stream.word = word;
  if (back) for (const then of [...stream.listeners]) then({ event: "back", id: null, data: null });
  tell();
}

export function reconnect() {
  for (const stream of streams.values()) {
    clearTimeout(stream.timer);
    if (stream.stop) { stream.stop.abort(); stream.stop = null; }
    stream.last = null;
    open(stream);
  }
}

document.addEventListener("visibilitychange", () => {
  for (const stream of streams.values()) {
    if (document.hidden) stream.stop?.abort();
    else if (!stream.stop) { clearTimeout(stream.timer); open(stream); }
  }
});
addEventListener("online", () => streams.forEach((stream) => { if (!stream.stop) { clearTimeout(stream.timer); open(stream); } }));
