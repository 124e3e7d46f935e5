// Charts as SVG, made from numbers. Each says in words what it shows, for those who cannot see it.

import { h, s } from "./dom.js";
import { brief, clock, count, lasting, minute } from "./format.js";

// In units of the drawing: fewer on a narrow screen, so that its words stay readable.
const wide = () => (innerWidth < 832 ? 360 : 720);

/** Stacked columns over time: series [{name, word, values}] with as many values as `times`. */
export function columns(label, times, series, { height = 150 } = {}) {
  const width = wide(), left = 34, bottom = 20, top = 8;
  const sums = times.map((_, place) => series.reduce((sum, one) => sum + one.values[place], 0));
  const most = nice(Math.max(1, ...sums));
  const step = (width - left) / Math.max(1, times.length);
  const y = (value) => top + (height - top - bottom) * (1 - value / most);
  const marks = [0, most / 2, most].filter((value, place) => place !== 1 || most >= 2);
  const every = Math.max(1, Math.round(times.length / (width / 120)));
  const total = sums.reduce((sum, one) => sum + one, 0);
  return h("figure.chart", null,
    s("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${label}: ${series.map((one) => `${one.word} ${count(one.values.reduce((a, b) => a + b, 0))}`).join(", ")}` },
      marks.map((value) => [s("line.axis", { x1: left, x2: width, y1: y(value), y2: y(value) }), s("text.tick", { x: left - 6, y: y(value) + 4, "text-anchor": "end" }, brief(value))]),
      times.map((at, place) => {
        let base = 0;
        return s("g", { "data-key": at },
          s("title", null, `${minute(at)} – ${series.map((one) => `${one.word} ${one.values[place]}`).join(", ")}`),
          s("rect.catch", { x: left + place * step, y: top, width: step, height: height - top - bottom }),
          series.map((one) => {
            const value = one.values[place];
            base += value;
            return value ? s("rect", { class: one.name, x: left + place * step + step * 0.12, width: step * 0.76, y: y(base), height: Math.max(1, y(base - value) - y(base)), rx: 1 }) : null;
          }));
      }),
      times.map((at, place) => (place % every === 0 && place < times.length - 2 ? s("text.tick", { x: left + place * step, y: height - 5 }, minute(at)) : null)),
      s("text.tick", { x: width, y: height - 5, "text-anchor": "end" }, "now")),
    total ? null : h("p.chart-empty", null, "Nothing in the last hour"),
    legend(series));
}

export const legend = (series) => h("ul.legend", null, series.map((one) => h("li", null, h("i", { class: `dot ${one.name}` }), one.word)));

function nice(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 4, 5, 10].map((step) => step * power).find((step) => step >= value);
}

/** Bars from left to right: items [{word, value, name, href}]. */
export function bars(label, items, { unit = "" } = {}) {
  const most = Math.max(1, ...items.map((item) => item.value));
  return h("ul.bars", { "aria-label": label }, items.map((item) => h("li", { "data-key": item.word },
    h("span.bar-word", { title: item.word }, item.href ? h("a", { href: item.href }, item.word) : item.word),
    s("svg.bar", { viewBox: "0 0 100 8", preserveAspectRatio: "none", "aria-hidden": "true" },
      s("rect.track", { width: 100, height: 8, rx: 2 }), s("rect", { class: item.name ?? "bad", width: Math.max(0.8, (item.value / most) * 100), height: 8, rx: 2 })),
    h("span.bar-value", null, count(item.value), unit))));
}

/** How much of a limit is used. */
export function gauge(label, used, cap, words) {
  const share = cap > 0 ? Math.min(1, used / cap) : used > 0 ? 1 : 0;
  return h("div.gauge", { role: "meter", "aria-label": label, "aria-valuenow": used, "aria-valuemin": 0, "aria-valuemax": Math.max(cap, used) },
    s("svg", { viewBox: "0 0 100 6", preserveAspectRatio: "none", "aria-hidden": "true" },
      s("rect.track", { width: 100, height: 6, rx: 3 }),
      s("rect", { class: words ? "one" : share >= 1 ? "bad" : share > 0.8 ? "mild" : "one", width: share * 100, height: 6, rx: 3 })),
    h("span", null, words ? words(used) : `${count(used)} of ${count(cap)}`));
}

/** How far from their limits: rows [{word, href, parts: [{word, value, cap, name}]}], a bar for each part of a row. */
export function levels(label, rows) {
  const width = 360, line = 17, head = 20, x = 74, most = width - x - 96;
  let y = 0;
  const drawn = rows.map((row) => {
    const top = y;
    y += head + row.parts.length * line + 6;
    return s("g", { "data-key": row.word },
      s("text.level-word", { x: 0, y: top + 13 }, row.word),
      row.parts.map((part, place) => {
        const middle = top + head + place * line, share = part.cap > 0 ? Math.min(1, part.value / part.cap) : 1;
        return [
          s("text.tick", { x: 0, y: middle + 9 }, part.word),
          s("rect.track", { x, y: middle + 1, width: most, height: 9, rx: 3 }),
          s("rect", { class: part.name(share), x, y: middle + 1, width: Math.max(share > 0 ? 2 : 0, share * most), height: 9, rx: 3 }, s("title", null, `${row.word}: ${part.word} ${brief(part.value)} of ${brief(part.cap)}`)),
          s("text.tick", { x: x + most + 6, y: middle + 9 }, `${brief(part.value)} of ${brief(part.cap)}${part.unit ?? ""}`),
        ];
      }));
  });
  const words = rows.map((row) => `${row.word} ${row.parts.map((part) => `${part.word} ${count(part.value)} of ${count(part.cap)}`).join(", ")}`).join("; ");
  return h("figure.chart.levels", null, s("svg", { viewBox: `0 0 ${width} ${y}`, role: "img", "aria-label": `${label}: ${words}` }, drawn));
}

/** A job's life: spans [{from, to, name, word}] and marks [{at, word}] on one line of time (milliseconds). */
export function timeline(label, spans, marks) {
  const start = Math.min(...spans.map((span) => span.from), ...marks.map((mark) => mark.at));
  const end = Math.max(start + 1, ...spans.map((span) => span.to), ...marks.map((mark) => mark.at));
  const width = wide(), height = 62, x = (at) => 4 + ((at - start) / (end - start)) * (width - 8);
  return h("figure.chart", null,
    s("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${label}: ${spans.map((span) => `${span.word} ${lasting((span.to - span.from) / 1000)}`).join(", ")}` },
      s("rect.track", { x: 4, y: 16, width: width - 8, height: 18, rx: 3 }),
      spans.map((span, place) => s("rect", { "data-key": `s${place}`, class: span.name, x: x(span.from), y: 16, width: Math.max(1.5, x(span.to) - x(span.from)), height: 18, rx: 2 },
        s("title", null, `${span.word}: ${lasting((span.to - span.from) / 1000)}`))),
      marks.map((mark, place) => s("g", { "data-key": `m${place}` }, s("title", null, `${mark.word} at ${clock(new Date(mark.at).toISOString())}`),
        s("line.mark", { x1: x(mark.at), x2: x(mark.at), y1: 11, y2: 39 }), s("circle", { class: mark.name ?? "still", cx: x(mark.at), cy: 9, r: 3.5 }))),
      s("text.tick", { x: 4, y: 54 }, clock(new Date(start).toISOString())),
      s("text.tick", { x: width / 2, y: 54, "text-anchor": "middle" }, lasting((end - start) / 1000)),
      s("text.tick", { x: width - 4, y: 54, "text-anchor": "end" }, clock(new Date(end).toISOString()))));
}

/** A small line of numbers. */
export function spark(label, values, name = "one") {
  const most = Math.max(1, ...values);
  const points = values.map((value, place) => `${(place / Math.max(1, values.length - 1)) * 100},${22 - (value / most) * 20}`).join(" ");
  return s("svg.spark", { viewBox: "0 0 100 24", preserveAspectRatio: "none", role: "img", "aria-label": label },
    s("polyline.stroke", { class: name, points, "vector-effect": "non-scaling-stroke" }));
}
