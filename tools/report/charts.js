// Elements, numbers, and the three pictures of the page: curves with bands, shares over time, bars in tables.
function el(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}
function svg(tag, attributes, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes || {})) node.setAttribute(name, value);
  node.append(...children);
  return node;
}
function number(value, digits = 3) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "-";
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e5 || size < 1e-3)) return value.toExponential(Math.max(0, digits - 1));
  return String(Number(value.toPrecision(Math.max(digits, Math.floor(Math.log10(size || 1)) + 1))));
}
const percent = (value) => (value === null || value === undefined ? "-" : (100 * value).toFixed(value > 0 && value < 0.1 ? 1 : 0) + "%");
const times = (value) => (value === null || value === undefined ? "-" : value.toFixed(2) + "x");
function seconds(value) {
  if (value === null || value === undefined) return "-";
  for (const [unit, size] of [["s", 1], ["ms", 1e-3], ["us", 1e-6]]) if (value >= size) return number(value / size) + " " + unit;
  return number(value * 1e9) + " ns";
}
function duration(value) {
  if (value === null || value === undefined) return "-";
  if (value < 90) return number(value) + " s";
  return value < 5400 ? number(value / 60) + " min" : number(value / 3600) + " h";
}

// A few round numbers between low and high.
function ticks(low, high, count) {
  const rough = (high - low) / count || 1, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((k) => k * power).find((k) => k >= rough);
  const list = [];
  for (let at = Math.ceil(low / step - 1e-9) * step; at <= high + step * 1e-9; at += step) list.push(Number(at.toPrecision(12)));
  return list;
}

// The mean (or median) of each point and its neighbours, about a twentieth of all.
function smooth(points, byMedian) {
  const half = Math.floor(points.length / 40);
  return points.map(([x], i) => {
    const near = points.slice(Math.max(0, i - half), i + half + 1).map(([, v]) => v);
    if (byMedian) return [x, near.sort((a, b) => a - b)[near.length >> 1]];
    return [x, near.reduce((a, b) => a + b) / near.length];
  });
}

// At each step that all runs have: their mean, least and most.
function band(runs) {
  const at = new Map();
  for (const run of runs) for (const [x, y] of run) if (y !== null) at.set(x, [...(at.get(x) || []), y]);
  return [...at].filter(([, ys]) => ys.length === runs.length).sort((a, b) => a[0] - b[0])
    .map(([x, ys]) => [x, ys.reduce((a, b) => a + b) / ys.length, Math.min(...ys), Math.max(...ys)]);
}

const frame = { width: 380, height: 190, left: 46, right: 10, top: 8, bottom: 24 };
function axes(x0, x1, y0, y1, yText) {
  const { width, height, left, right, top, bottom } = frame;
  const x = (value) => left + ((value - x0) / (x1 - x0 || 1)) * (width - left - right);
  const y = (value) => height - bottom - ((value - y0) / (y1 - y0 || 1)) * (height - top - bottom);
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img" });
  for (const value of ticks(y0, y1, 4)) {
    picture.append(svg("line", { x1: left, x2: width - right, y1: y(value), y2: y(value), stroke: "var(--line)" }),
      svg("text", { x: left - 5, y: y(value) + 4, "text-anchor": "end" }, yText(value)));
  }
  for (const value of ticks(x0, x1, 5).filter(Number.isInteger)) {
    picture.append(svg("text", { x: x(value), y: height - 8, "text-anchor": "middle" }, String(value)));
  }
  return { picture, x, y };
}
const path = (points, x, y) => points.map(([a, b], i) => (i ? "L" : "M") + x(a).toFixed(1) + " " + y(b).toFixed(1)).join("");

// series: [{label, color, runs: [[[step, value], ...], ...]}]; null where none has two points.
// `byMedian`: for what spikes (a KL divergence, a gradient's norm), whose mean would be its spikes'.
function curves(title, series, yText = (v) => number(v), byMedian = false) {
  const drawn = series.map((one) => ({ ...one, runs: one.runs.map((run) => run.filter(([, v]) => v !== null)).filter((run) => run.length > 0) }))
    .filter((one) => one.runs.length > 0);
  const all = drawn.flatMap((one) => one.runs.flat());
  if (all.length < 2) return null;
  let [x0, x1, y0, y1] = [Infinity, -Infinity, Infinity, -Infinity];
  const lines = drawn.map((one) => band(one.runs.map((run) => smooth(run, byMedian))));
  for (const [px] of all) { x0 = Math.min(x0, px); x1 = Math.max(x1, px); }
  // A few wild points must not flatten the rest: where they would take most of the picture, they leave it.
  const sorted = all.map(([, v]) => v).sort((a, b) => a - b), at = (share) => sorted[Math.round(share * (sorted.length - 1))];
  const usual = at(0.95) - at(0.05) || Math.abs(at(0.5)) || 1;
  const cut = at(1) - at(0) > 6 * usual;
  y0 = cut ? Math.max(at(0), at(0.05) - usual) : at(0); y1 = cut ? Math.min(at(1), at(0.95) + usual) : at(1);
  const outside = sorted.filter((v) => v < y0 || v > y1).length;
  if (y0 > 0 && y0 < 0.4 * y1) y0 = 0;
  if (y0 === y1) { y0 -= 0.5; y1 += 0.5; }
  if (x0 === x1) { x0 -= 1; x1 += 1; }
  const { picture, x, y } = axes(x0, x1, y0, y1, yText);
  picture.setAttribute("aria-label", title + ": " + drawn.map((one, i) => {
    const line = lines[i];
    return line.length ? `${one.label} from ${yText(line[0][1])} to ${yText(line[line.length - 1][1])}` : one.label;
  }).join("; "));
  const clamp = (v) => Math.min(Math.max(v, y0), y1);
  drawn.forEach((one, i) => {
    const line = lines[i];
    if (line.length === 1) {
      // Measured once: a dot and the range over the seeds, side by side where there are several.
      const [step, mean, least, most] = line[0], cx = x(step) + 14 * (i - (drawn.length - 1) / 2);
      picture.append(svg("line", { x1: cx, x2: cx, y1: y(clamp(least)), y2: y(clamp(most)), stroke: one.color, "stroke-width": 6, opacity: 0.18 }),
        svg("circle", { cx, cy: y(clamp(mean)), r: 3, fill: one.color }));
      return;
    }
    if (one.runs.length > 1) {
      const upper = line.map(([a, , , c]) => [a, clamp(c)]), lower = line.map(([a, , b]) => [a, clamp(b)]).reverse();
      picture.append(svg("path", { d: path([...upper, ...lower], x, y) + "Z", fill: one.color, opacity: 0.18 }));
    } else {
      picture.append(svg("path", { d: path(one.runs[0].map(([a, b]) => [a, clamp(b)]), x, y), fill: "none", stroke: one.color, opacity: 0.3 }));
    }
    picture.append(svg("path", { d: path(line.map(([a, b]) => [a, clamp(b)]), x, y), fill: "none", stroke: one.color, "stroke-width": 1.8 }));
  });
  const told = el("figcaption", { class: "quiet", "aria-live": "off" }, " ");
  const cursor = svg("line", { y1: frame.top, y2: frame.height - frame.bottom, stroke: "var(--quiet)", visibility: "hidden" });
  picture.append(cursor);
  const extreme = Math.abs(at(0)) > Math.abs(at(1)) ? at(0) : at(1);
  // Of what spikes the most alone would mislead: where it was, and what most steps had.
  const spikes = byMedian ? `median ${yText(at(0.5))}, 95th percentile ${yText(at(0.95))}, largest ${yText(extreme)} at step ${all.find(([, v]) => v === extreme)[0]}` : "";
  const left = outside ? `${outside} of ${sorted.length} points lie outside` + (byMedian ? "" : ", up to " + yText(extreme)) : "";
  const rest = () => { cursor.setAttribute("visibility", "hidden"); told.textContent = [spikes, left].filter(Boolean).join("; ") || "\u00a0"; };
  picture.addEventListener("pointermove", (event) => {
    const box = picture.getBoundingClientRect();
    const step = x0 + (((event.clientX - box.left) / box.width) * frame.width - frame.left) / (frame.width - frame.left - frame.right) * (x1 - x0);
    const parts = drawn.map((one, i) => {
      if (!lines[i].length) return one.label;
      const near = lines[i].reduce((a, b) => (Math.abs(b[0] - step) < Math.abs(a[0] - step) ? b : a));
      return (drawn.length > 1 ? one.label + " " : "") + yText(near[1]);
    });
    const place = Math.min(Math.max(step, x0), x1);
    cursor.setAttribute("x1", x(place)); cursor.setAttribute("x2", x(place)); cursor.setAttribute("visibility", "visible");
    told.textContent = `step ${Math.round(place)}: ${parts.join(", ")}`;
  });
  picture.addEventListener("pointerleave", rest);
  rest();
  return el("figure", {}, el("h3", {}, title), picture, told);
}

// layers: [{label, color, values}], one value for each x; drawn as shares of their sum.
function shares(title, xs, layers) {
  if (xs.length === 0) return null;
  const points = xs.length === 1 ? [...xs, xs[0] + 1] : xs;
  const at = (layer, i) => layer.values[Math.min(i, xs.length - 1)];
  const totals = points.map((_, i) => layers.reduce((sum, layer) => sum + at(layer, i), 0) || 1);
  const { picture, x, y } = axes(points[0], points[points.length - 1], 0, 1, percent);
  const base = points.map(() => 0);
  for (const layer of layers) {
    const lower = points.map((px, i) => [px, base[i]]);
    points.forEach((_, i) => { base[i] += at(layer, i) / totals[i]; });
    const upper = points.map((px, i) => [px, base[i]]);
    const shape = svg("path", { d: path([...upper, ...lower.reverse()], x, y) + "Z", fill: layer.color });
    shape.append(svg("title", {}, layer.label));
    picture.append(shape);
  }
  picture.setAttribute("aria-label", title);
  return el("figure", {}, el("h3", {}, title), picture);
}
const legend = (entries) => el("div", { class: "legend" }, entries.map(({ label, color }) => el("span", {}, el("i", { style: "background:" + color }), label)));

// header: [[text, is a number]]; rows of texts or nodes.
function table(header, rows) {
  const cell = (tag, content, isNumber) => el(tag, { class: isNumber ? "number" : null }, content);
  return el("div", { class: "scroll" }, el("table", {},
    el("thead", {}, el("tr", {}, header.map(([text, isNumber]) => cell("th", text, isNumber)))),
    el("tbody", {}, rows.map((row) => el("tr", {}, row.map((content, i) => cell("td", content, header[i][1])))))));
}
const bar = (share, color) => el("span", { class: "bar", style: `width:${Math.max(0, Math.min(1, share || 0)) * 120}px;background:${color || "var(--s0)"}` });
