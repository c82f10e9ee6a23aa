/* Charts of the page of `rewardkit logs`.

   The data is in the element #data. A chart is an SVG that is drawn again when its width, the axis,
   the smoothing or the visible runs change. Texts enter the document through textContent only. */
"use strict";

const $ = (id) => document.getElementById(id);
const data = JSON.parse($("data").textContent);
const { words } = data;
const state = { x: data.x, window: data.window, hidden: new Set() };
const HEIGHT = 190;
const MARGIN = { left: 56, right: 10, top: 8, bottom: 22 };
const redraws = []; // a function for each chart that draws it again

function element(tag, attributes = {}, text) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  if (text !== undefined) node.textContent = text;
  return node;
}

function shape(tag, attributes = {}, text) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  if (text !== undefined) node.textContent = text;
  return node;
}

const number = (value) => {
  const size = Math.abs(value);
  if (value === 0) return "0";
  if (size >= 1e6 || size < 1e-3) return value.toExponential(1).replace("e+", "e");
  if (size >= 1000) return value.toLocaleString("en", { maximumFractionDigits: 0 });
  return String(Number(value.toPrecision(4)));
};

/* Hours of the steps of a run, and where a step is on the axis. */
const hours = data.runs.map((run) => run.hours && new Map(run.hours.steps.map((s, i) => [s, run.hours.at[i]])));
const onAxis = (run, step) => (state.x === "hours" && hours[run] ? hours[run].get(step) ?? null : step);

function smoothed(values, window) {
  if (window <= 1) return values;
  const half = Math.floor(window / 2);
  return values.map((value, i) => {
    if (value === null) return null;
    const near = values.slice(Math.max(0, i - half), i + half + 1).filter((v) => v !== null);
    return near.reduce((a, b) => a + b, 0) / near.length;
  });
}

/* The distance of about `most` round numbers: 1, 2 or 5 times a power of ten. */
function roundStep(low, high, most) {
  const rough = (high - low) / most || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough * 0.999);
}

function ticks(low, high, step) {
  const values = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-6; i += 1) values.push(i * step);
  return values;
}

/* The line is interrupted at points that are not numbers; a piece of one point is a dot. */
function path(points, x, y) {
  let text = "";
  let open = false;
  const dots = [];
  points.forEach(([at, value], i) => {
    if (value === null || at === null) {
      open = false;
      return;
    }
    const next = points[i + 1];
    if (!open && (!next || next[1] === null)) dots.push([at, value]);
    text += `${open ? "L" : "M"}${x(at).toFixed(1)},${y(value).toFixed(1)}`;
    open = true;
  });
  return { text, dots };
}

/* From the first step of the visible runs to the last: all charts share one axis. */
function range() {
  const ends = data.runs.flatMap((run, i) => (state.hidden.has(i) ? [] : run.ends.map((step) => onAxis(i, step))));
  return ends.filter((end) => end !== null);
}

/* Values of each visible curve, as logged and smoothed. */
function visible(chart) {
  return chart.curves
    .filter((curve) => !state.hidden.has(curve.run))
    .map((curve) => ({
      run: curve.run,
      best: curve.best,
      best_text: curve.best_text,
      steps: curve.steps,
      at: curve.steps.map((step) => onAxis(curve.run, step)),
      raw: curve.values,
      smooth: smoothed(curve.values, curve.values.length < data.smoothed ? 1 : state.window),
    }));
}

function draw(chart, figure) {
  const old = figure.querySelector("svg");
  const width = figure.clientWidth || 360;
  const svg = shape("svg", { width, height: HEIGHT, role: "img", "aria-label": chart.title });
  const curves = visible(chart);
  const ys = curves.flatMap((curve) => curve.raw.filter((v) => v !== null));
  const [x, y] = scales(range(), ys, width);
  axes(svg, x, y, width);
  for (const mark of chart.marks) if (!state.hidden.has(mark.run)) shade(svg, mark, x);
  for (const curve of curves) lines(svg, curve, x, y);
  const cross = shape("g", { class: "cross" });
  svg.append(cross);
  svg.addEventListener("pointermove", (event) => point(event, svg, cross, figure, curves, x, y));
  svg.addEventListener("pointerleave", () => {
    cross.replaceChildren();
    readout(figure).textContent = "";
  });
  if (old) old.replaceWith(svg);
  else figure.append(svg);
}

function scales(xs, ys, width) {
  const extent = (values) => values.reduce(([a, b], v) => [Math.min(a, v), Math.max(b, v)], [Infinity, -Infinity]);
  let [low, high] = ys.length ? extent(ys) : [0, 1];
  if (low === high) [low, high] = low ? [low - Math.abs(low) * 0.1, low + Math.abs(low) * 0.1] : [0, 1];
  const step = roundStep(low, high, 4); // the axis ends at round numbers
  [low, high] = [Math.floor(low / step + 1e-9) * step, Math.ceil(high / step - 1e-9) * step];
  let [left, right] = xs.length ? extent(xs) : [0, 1];
  if (left === right) [left, right] = [left - 1, right + 1];
  const inner = width - MARGIN.left - MARGIN.right;
  const x = (value) => MARGIN.left + (inner * (value - left)) / (right - left);
  const y = (value) => MARGIN.top + (HEIGHT - MARGIN.top - MARGIN.bottom) * (1 - (value - low) / (high - low));
  Object.assign(x, { low: left, high: right });
  Object.assign(y, { low, high, step });
  return [x, y];
}

function axes(svg, x, y, width) {
  for (const value of ticks(y.low, y.high, y.step)) {
    const at = y(value);
    svg.append(
      shape("line", { class: "grid", x1: MARGIN.left, x2: width - MARGIN.right, y1: at, y2: at }),
      shape("text", { class: "up", x: MARGIN.left - 6, y: at, dy: 4 }, number(Number(value.toPrecision(6)))),
    );
  }
  const base = HEIGHT - MARGIN.bottom;
  svg.append(shape("line", { class: "base", x1: MARGIN.left, x2: width - MARGIN.right, y1: base, y2: base }));
  const pixels = 7 * number(Math.round(x.high)).length + 20; // of the longest label and a gap
  const step = roundStep(x.low, x.high, Math.max(2, Math.floor((width - MARGIN.left) / pixels)));
  for (const value of ticks(x.low, x.high, step)) {
    if (state.x === "step" && !Number.isInteger(value)) continue;
    svg.append(shape("text", { class: "across", x: x(value), y: HEIGHT - 6 }, number(value)));
  }
}

function shade(svg, mark, x) {
  const [a, b] = [onAxis(mark.run, mark.first), onAxis(mark.run, mark.last)];
  if (a === null || b === null) return;
  const start = Math.max(x(a), MARGIN.left);
  const box = { x: start, width: Math.max(x(b) - start, 2), y: MARGIN.top, height: HEIGHT - MARGIN.top - MARGIN.bottom };
  const box_ = shape("rect", { class: `mark ${mark.severity}`, ...box });
  box_.append(shape("title", {}, `${words[mark.severity]}: ${mark.label}`));
  svg.append(box_, shape("line", { class: `edge ${mark.severity}`, x1: start, x2: start, y1: box.y, y2: box.y + box.height }));
}

function lines(svg, curve, x, y) {
  const colour = data.runs[curve.run].colour;
  const one = (values, attributes) => {
    const { text, dots } = path(values.map((value, i) => [curve.at[i], value]), x, y);
    svg.append(shape("path", { d: text, fill: "none", stroke: colour, ...attributes }));
    for (const [at, value] of dots) svg.append(shape("circle", { cx: x(at), cy: y(value), r: 2.5, fill: colour }));
  };
  if (curve.smooth !== curve.raw) one(curve.raw, { "stroke-width": 1, "stroke-opacity": 0.3 });
  one(curve.smooth, { "stroke-width": 1.8, "stroke-linejoin": "round" });
  if (curve.best !== undefined) ring(svg, curve, x, y);
  if (curve.raw.length > 40) return;
  curve.smooth.forEach((value, i) => {
    if (value !== null && curve.at[i] !== null)
      svg.append(shape("circle", { cx: x(curve.at[i]), cy: y(value), r: 2.2, fill: colour }));
  });
}

/* A ring around the best point of a curve. */
function ring(svg, curve, x, y) {
  const i = curve.steps.indexOf(curve.best);
  if (i < 0 || curve.at[i] === null) return;
  const best = shape("circle", { class: "best", cx: x(curve.at[i]), cy: y(curve.raw[i]), r: 6 });
  best.append(shape("title", {}, curve.best_text));
  svg.append(best);
}

/* Show the point of each curve that is nearest to the pointer, in the chart and as text. */
function point(event, svg, cross, figure, curves, x, y) {
  const at = event.clientX - svg.getBoundingClientRect().left;
  cross.replaceChildren();
  const texts = [];
  for (const curve of curves) {
    let best = -1;
    curve.at.forEach((value, i) => {
      if (value === null) return;
      if (best < 0 || Math.abs(x(value) - at) < Math.abs(x(curve.at[best]) - at)) best = i;
    });
    if (best < 0) continue;
    const value = curve.raw[best];
    const { name, colour } = data.runs[curve.run];
    const hour = state.x === "hours" ? `${number(curve.at[best])} h, ` : "";
    const who = data.runs.length > 1 ? `${name}, ` : "";
    texts.push(`${who}${hour}${words.step} ${curve.steps[best]}: ${value === null ? "NaN" : number(value)}`);
    const across = x(curve.at[best]);
    cross.append(shape("line", { x1: across, x2: across, y1: MARGIN.top, y2: HEIGHT - MARGIN.bottom }));
    if (value !== null) cross.append(shape("circle", { cx: across, cy: y(value), r: 4, fill: colour }));
  }
  readout(figure).textContent = texts.join("   ");
}

function add(chart, parent, removable) {
  const figure = element("figure", { class: "curve" });
  const head = element("figcaption");
  head.append(element("b", {}, chart.title));
  const labels = [...new Map(chart.marks.map((mark) => [mark.label, mark.severity]))];
  for (const [label, severity] of labels) head.append(element("span", { class: `badge ${severity}` }, label));
  for (const curve of chart.curves) {
    if (curve.best === undefined) continue;
    const who = data.runs.length > 1 ? `${data.runs[curve.run].name}: ` : "";
    head.append(element("div", { class: "readout" }, `${who}${curve.best_text}`));
  }
  figure.append(head, element("div", { class: "readout", "aria-live": "off" }));
  parent.append(figure);
  const again = () => draw(chart, figure);
  redraws.push(again);
  if (removable) {
    const button = element("button", { type: "button", "aria-label": `${words.remove}: ${chart.title}` }, "×");
    button.addEventListener("click", () => {
      redraws.splice(redraws.indexOf(again), 1);
      figure.remove();
    });
    head.append(button);
  }
  again();
}

const readout = (figure) => figure.querySelector(":scope > .readout");
const redraw = () => redraws.forEach((again) => again());

function controls() {
  const showWindow = () => {
    $("window-text").textContent = state.window > 1 ? words.points.replace("{n}", state.window) : words.raw;
  };
  $("window").value = (state.window - 1) / 2;
  $("window").addEventListener("input", () => {
    state.window = 2 * Number($("window").value) + 1;
    showWindow();
    redraw();
  });
  showWindow();
  const timed = data.runs.every((run) => run.hours);
  if (!timed) state.x = "step";
  $("x").value = state.x;
  $("x").disabled = !timed;
  $("x").addEventListener("change", () => {
    state.x = $("x").value;
    redraw();
  });
  for (const [i, chart] of data.others.entries()) $("more").append(element("option", { value: i }, chart.title));
  $("more").addEventListener("change", () => {
    if ($("more").value !== "") add(data.others[Number($("more").value)], $("charts"), true);
    $("more").value = "";
  });
}

function legend() {
  data.runs.forEach((run, i) => {
    const button = element("button", { type: "button", "aria-pressed": "true" });
    const key = element("i", { class: "key" });
    key.style.background = run.colour;
    button.append(key, document.createTextNode(run.name));
    button.addEventListener("click", () => {
      const hide = !state.hidden.has(i);
      if (hide) state.hidden.add(i);
      else state.hidden.delete(i);
      button.setAttribute("aria-pressed", String(!hide));
      redraw();
    });
    $("legend").append(button);
  });
}

controls();
legend();
for (const chart of data.charts) add(chart, $("charts"), false);
let resized;
addEventListener("resize", () => {
  clearTimeout(resized);
  resized = setTimeout(redraw, 100);
});
