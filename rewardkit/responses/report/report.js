/* The list of responses of a report page.

   The index (a column for each property that is listed or sorted by) is unpacked at once. Texts are
   in chunks that are unpacked when a response in them is opened or when they are searched. Only
   visible rows are in the document. Texts enter it through textContent only. */
"use strict";

const FIELD = "\x1f";
const RECORD = "\x1e";
const FIELDS = ["where", "prompt", "text", "gold", "pred"];
const FORMULA_FIELDS = ["prompt", "text", "gold", "pred"];
const MATHML = "http://www.w3.org/1998/Math/MathML";
const AHEAD = 4; // chunks that are unpacked while another one is searched
const SLICE = 12; // milliseconds of work before the browser may handle events

const $ = (id) => document.getElementById(id);
const list = $("list");
const sheet = list.firstElementChild;
const shown = { order: [], at: -1 }; // the listed responses, and the index of the open one
const filters = { statuses: new Set(), group: null };
const chunks = new Map(); // number of a chunk -> promise of its records
const pool = []; // the rows in the document
let index; // the columns
let size; // responses per chunk
let height; // height of a row, in pixels
let latest = 0; // number of the latest refresh; older ones stop
let searched = { query: "", found: null }; // the last search; a longer query continues from it

const number = (value) => value.toLocaleString("en");
const pause = () => new Promise((resolve) => setTimeout(resolve));
const loaded = new Promise((resolve) => {
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", resolve);
  else resolve();
});

function element(tag, className, text) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
}

async function unpack(base64) {
  const bytes = Uint8Array.fromBase64
    ? Uint8Array.fromBase64(base64)
    : Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}

/* The records of a chunk, of texts or of formulas. Its packed form is removed from the document. */
function records(chunk, kind = "chunks") {
  const key = kind === "chunks" ? chunk : `${kind} ${chunk}`;
  if (!chunks.has(key)) {
    const read = async () => {
      await loaded;
      const packed = $(kind).children[chunk];
      if (!packed) return [];
      const text = await unpack(packed.textContent);
      packed.textContent = "";
      return text.split(RECORD);
    };
    chunks.set(key, read());
  }
  return chunks.get(key);
}

async function response(i) {
  const record = (await records(Math.floor(i / size)))[i % size].split(FIELD);
  const own = Object.fromEntries(FIELDS.map((name, at) => [name, record[at]]));
  const formulas = JSON.parse((await records(Math.floor(i / size), "formulas"))[i % size] ?? "[]");
  own.formulas = Object.fromEntries(FORMULA_FIELDS.map((name, at) => [name, withOffsets(formulas[at] ?? [])]));
  return own;
}

/* Formulas with their offsets in the text instead of distances. */
function withOffsets(formulas) {
  let offset = 0;
  return formulas.map(([gap, length, isDisplay, ...pieces]) => {
    const start = offset + gap;
    offset = start + length;
    return { start, end: offset, isDisplay, pieces };
  });
}

/* Formulas: MathML elements, with text as text nodes only */

function mathNode([tag, attributes, ...parts]) {
  const made = document.createElementNS(MATHML, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...parts.map((part) => (typeof part === "string" ? part : mathNode(part))));
  return made;
}

function formulaElement(source, { isDisplay, pieces }) {
  const box = element("span", isDisplay ? "math display" : "math");
  const tex = element("span", "tex", source);
  tex.setAttribute("aria-hidden", true);
  box.append(tex);
  for (const [at, piece] of pieces.entries()) {
    const math = document.createElementNS(MATHML, "math");
    if (isDisplay) math.setAttribute("displaystyle", "true");
    math.append(...piece.map(mathNode));
    box.append(...(at ? [element("wbr")] : []), math);
  }
  return box;
}

/* A part of a text, with the formulas that are wholly inside it. */
function withFormulas(text, formulas, start = 0, end = text.length) {
  const parts = [];
  for (const formula of formulas) {
    if (formula.start < start || formula.end > end) continue;
    parts.push(text.slice(start, formula.start), formulaElement(text.slice(formula.start, formula.end), formula));
    start = formula.end;
  }
  return [...parts, text.slice(start, end)];
}

/* Selection of the listed responses */

function passes() {
  const { status, source, step, group } = index;
  const [ownSource, ownStep] = [$("source").value, $("step").value];
  return (i) =>
    (!filters.statuses.size || filters.statuses.has(status[i])) &&
    (ownSource === "" || source[i] === index.sources[ownSource]) &&
    (ownStep === "" || step[i] === index.steps[ownStep]) &&
    (filters.group === null || group[i] === filters.group);
}

/* All responses that contain the query in any field, ignoring case; null if a newer refresh has
   started. A query that continues the last one is searched only in the results of that one. */
async function search(query, run) {
  if (searched.query === query) return searched.found;
  const continues = searched.query && query.startsWith(searched.query);
  const candidates = continues ? searched.found : index.status.keys();
  const pattern = new RegExp(query.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&"), "i");
  const found = new Set();
  let start = performance.now();
  for (const i of candidates) {
    if (performance.now() - start > SLICE) {
      $("found").textContent = `Searching … ${Math.floor((100 * i) / index.status.length)} %`;
      await pause();
      if (run !== latest) return null;
      start = performance.now();
    }
    const chunk = chunks.get(Math.floor(i / size));
    const own = chunk?.ready ?? (await ready(Math.floor(i / size)));
    if (pattern.test(own[i % size])) found.add(i);
  }
  searched = { query, found };
  return found;
}

async function ready(chunk) {
  const promise = records(chunk);
  const last = Math.ceil(index.status.length / size) - 1;
  for (let next = chunk + 1; next <= Math.min(chunk + AHEAD, last); next++) records(next);
  promise.ready = await promise; // a search need not wait for it again
  return promise.ready;
}

async function refresh() {
  const run = ++latest;
  const query = $("query").value.trim();
  let found = null;
  if (query) {
    found = await search(query, run);
    if (run !== latest) return;
  }
  const pass = passes();
  const order = [];
  for (const i of index.status.keys()) if (pass(i) && (!found || found.has(i))) order.push(i);
  sort(order);
  const open = shown.order[shown.at];
  shown.order = order;
  shown.at = open === undefined ? -1 : order.indexOf(open);
  const all = index.status.length;
  $("found").textContent = `${number(order.length)} of ${number(all)} responses`;
  $("group").hidden = filters.group === null;
  sheet.style.height = `${order.length * height}px`;
  list.scrollTop = shown.at > 0 ? (shown.at - 2) * height : 0;
  draw();
}

/* Sort by a column, then by the order in the file; responses without a value come last. */
function sort(order) {
  const [name, sign] = $("order").value.split(" ");
  if (!name) return;
  const column = index[name];
  order.sort((a, b) => {
    if (column[a] === column[b]) return a - b;
    if (column[a] === null) return 1;
    if (column[b] === null) return -1;
    return (column[a] - column[b]) * sign;
  });
}

/* The list */

function draw() {
  const first = Math.max(0, Math.floor(list.scrollTop / height) - 4);
  const count = Math.ceil(list.clientHeight / height) + 8;
  while (pool.length < count) pool.push(sheet.appendChild(item()));
  for (const [at, row] of pool.entries()) {
    // A row keeps its element while it is visible: each position has one of the pool.
    const position = first + ((((at - first) % pool.length) + pool.length) % pool.length);
    row.hidden = position >= shown.order.length;
    if (!row.hidden) fill(row, position);
  }
}

function item() {
  const row = element("div", "item");
  row.setAttribute("role", "option");
  row.id = `row-${pool.length}`;
  for (const names of [["status", "score", "soft grow", "soft"], ["grow"]]) {
    const line = row.appendChild(element("div"));
    for (const name of names) line.append(element("span", name));
  }
  row.addEventListener("click", () => open(Number(row.dataset.position)));
  return row;
}

function fill(row, position) {
  const i = shown.order[position];
  const [status, score, answer, length] = row.firstElementChild.children;
  row.style.top = `${position * height}px`;
  row.dataset.position = position;
  row.setAttribute("aria-selected", position === shown.at);
  row.setAttribute("aria-posinset", position + 1);
  row.setAttribute("aria-setsize", shown.order.length);
  status.className = `status ${index.status[i]}`;
  status.textContent = index.status[i].replaceAll("_", " ");
  score.textContent = index.score[i];
  answer.textContent = `${index.pred[i] || "–"} | gold ${index.gold[i]}`;
  length.textContent = `${index.step[i] === null ? "" : `step ${index.step[i]} · `}${number(index.length[i])}`;
  row.children[1].firstElementChild.textContent = index.line[i];
}

/* One response */

async function open(position) {
  const i = shown.order[position];
  if (i === undefined) return;
  shown.at = position;
  const top = position * height;
  if (top < list.scrollTop) list.scrollTop = top;
  if (top + height > list.scrollTop + list.clientHeight) list.scrollTop = top + height - list.clientHeight;
  draw();
  const row = pool.find((each) => !each.hidden && Number(each.dataset.position) === position);
  if (row) list.setAttribute("aria-activedescendant", row.id);
  const own = await response(i);
  if (shown.order[shown.at] === i) show(i, own);
}

function show(i, own) {
  const detail = $("detail");
  detail.replaceChildren(
    heading(i),
    facts(i, own),
    ...(own.prompt ? [folded("prompt", own.prompt.length, withFormulas(own.prompt, own.formulas.prompt), own.prompt.length < 1500)] : []),
    element("h3", "", "response"),
    ...reading(i, own.text, own.formulas.text),
  );
  detail.scrollTop = 0;
}

function heading(i) {
  const bar = element("div", "bar2");
  const close = element("button", "", "← back");
  close.id = "close";
  close.addEventListener("click", () => {
    $("detail").classList.remove("open");
    list.focus();
  });
  bar.append(close, element("b", `status ${index.status[i]}`, index.status[i].replaceAll("_", " ")));
  bar.append(element("span", "", `score ${index.score[i]}`));
  const alike = index.group.filter((group) => group === index.group[i]).length;
  if (alike > 1) {
    const button = element("button", "", `${number(alike)} responses to this prompt`);
    button.addEventListener("click", () => {
      filters.group = index.group[i];
      $("detail").classList.remove("open");
      refresh();
    });
    bar.append(button);
  }
  return bar;
}

function facts(i, own) {
  const box = element("dl");
  const known = {
    answer: own.pred ? withFormulas(own.pred, own.formulas.pred) : "none",
    gold: own.gold ? withFormulas(own.gold, own.formulas.gold) : "",
    "data source": index.source[i],
    step: index.step[i],
    length: `${number(index.length[i])} characters`,
    where: own.where,
  };
  for (const [name, value] of Object.entries(known)) {
    if (value === "" || value === null) continue;
    const cell = element("dd");
    cell.append(...[value].flat());
    box.append(element("dt", "", name), cell);
  }
  return box;
}

function folded(name, length, parts, isOpen) {
  const box = element("details");
  const body = element("div", "body");
  body.append(...parts);
  box.open = isOpen;
  box.append(element("summary", "", `${name}, ${number(length)} characters`), body);
  return box;
}

/* The reasoning, folded unless there is nothing else, and the rest with the answer marked, or the
   formula that the answer is in. */
function reading(i, text, formulas) {
  const fold = index.fold[i];
  let [start, end] = [index.start[i], index.end[i]];
  const around = formulas.find((formula) => formula.start < end && formula.end > start);
  if (end && around) [start, end] = [Math.min(start, around.start), Math.max(end, around.end)];
  const parts = fold ? [folded("reasoning", fold, withFormulas(text, formulas, 0, fold), fold === text.length)] : [];
  const body = element("div", "body");
  if (end && start >= fold) {
    const mark = element("mark");
    mark.append(...withFormulas(text, formulas, start, end));
    body.append(...withFormulas(text, formulas, fold, start), mark, ...withFormulas(text, formulas, end));
  } else {
    body.append(...withFormulas(text, formulas, fold));
  }
  return fold < text.length || !fold ? [...parts, body] : parts;
}

/* The controls */

function choices(select, name, values) {
  select.append(new Option(`all ${name}s`, ""));
  for (const [at, value] of values.entries()) select.append(new Option(value ?? `no ${name}`, at));
  select.hidden = values.length < 2;
  select.addEventListener("change", refresh);
}

function distinct(column) {
  return [...new Set(column)].sort((a, b) => (a > b) - (a < b));
}

function statusButtons() {
  const counts = new Map();
  for (const status of index.status) counts.set(status, (counts.get(status) ?? 0) + 1);
  for (const [status, n] of [...counts].sort((a, b) => b[1] - a[1])) {
    const button = element("button", "", `${status.replaceAll("_", " ")} ${number(n)}`);
    button.setAttribute("aria-pressed", false);
    button.addEventListener("click", () => {
      if (!filters.statuses.delete(status)) filters.statuses.add(status);
      button.setAttribute("aria-pressed", filters.statuses.has(status));
      refresh();
    });
    $("statuses").append(button);
  }
}

function onKey(event) {
  const page = Math.max(1, Math.floor(list.clientHeight / height) - 1);
  const last = shown.order.length - 1;
  const moves = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -last, End: last };
  if (event.key in moves) {
    event.preventDefault();
    open(Math.min(last, Math.max(0, shown.at + moves[event.key])));
  } else if (event.key === "Enter" && shown.at >= 0) {
    $("detail").classList.add("open");
  }
}

/* Copy formulas as LaTeX only: browsers add a line break for each MathML element. */
function onCopy(event) {
  const selection = getSelection();
  if (!selection.rangeCount) return;
  const range = selection.getRangeAt(0);
  const around = range.commonAncestorContainer;
  const fragment = range.cloneContents();
  if (!(around.closest ? around : around.parentElement).closest(".body") || !fragment.querySelector("math")) return;
  for (const node of fragment.querySelectorAll("math")) node.remove();
  event.clipboardData.setData("text/plain", fragment.textContent);
  event.preventDefault();
}

function listen() {
  let waiting, drawing;
  $("query").addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(refresh, 150);
  });
  $("order").addEventListener("change", refresh);
  $("group").addEventListener("click", () => {
    filters.group = null;
    refresh();
  });
  list.addEventListener("scroll", () => {
    cancelAnimationFrame(drawing);
    drawing = requestAnimationFrame(draw);
  });
  list.addEventListener("click", () => $("detail").classList.add("open"));
  list.addEventListener("keydown", onKey);
  document.addEventListener("copy", onCopy);
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") $("detail").classList.remove("open");
  });
  new ResizeObserver(draw).observe(list);
}

async function start() {
  if (!window.DecompressionStream) throw new Error("it is too old to unpack the responses");
  const rem = parseFloat(getComputedStyle(document.documentElement).fontSize);
  height = 3.5 * rem; // --row in report.css
  size = Number($("index").dataset.chunk);
  index = JSON.parse(await unpack($("index").textContent));
  $("index").textContent = "";
  index.sources = distinct(index.source);
  index.steps = distinct(index.step);
  statusButtons();
  choices($("source"), "data source", index.sources);
  choices($("step"), "step", index.steps);
  listen();
  await refresh();
  performance.mark("ready");
  if (matchMedia("(min-width: 52rem)").matches) open(0);
}

start().catch((error) => {
  $("found").textContent = `The list cannot be shown in this browser: ${error.message}.`;
});
