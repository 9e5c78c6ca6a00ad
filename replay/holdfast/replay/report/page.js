"use strict";
// The page's own behaviour: draws timelines, zooms, sorts and filters tables. It fetches nothing.
// Texts reach the page as textContent or on the canvas, never as markup.

const PALETTE = 8, GUTTER = 190, LANE = 16, TOP = 26, EDGE = 2;

/** Where an element of a page is asked for by its id. */
const byId = (id) => document.getElementById(id);

/** Milliseconds for people. */
function duration(ms) {
  const size = Math.abs(ms);
  if (size < 1000) return `${Math.round(ms * 100) / 100} ms`;
  if (size < 120000) return `${(ms / 1000).toFixed(1)} s`;
  if (size < 7200000) return `${(ms / 60000).toFixed(1)} min`;
  return `${(ms / 3600000).toFixed(1)} h`;
}

/** A time since the first record; with milliseconds where only seconds are in view. */
function instant(ms, view) {
  return view[1] - view[0] < 60000 ? `+${(ms / 1000).toFixed(3)} s` : `+${duration(ms)}`;
}

const number = (n) => n.toLocaleString("en");

/** The cell at a place of a row's flat list: owner, owners, and its times and counts. */
function cellOf(timeline, run, at) {
  const cell = timeline.cells[run[at + 2]];
  const [owner, owners = 0, owned = 0, gap = 0, gaps = 0, overlap = 0, overlaps = 0] = cell;
  return { owner, owners, owned, gap, gaps, overlap, overlaps };
}

/** Keep a time range within the log, and not narrower than what there is to see in it. */
function clamped(from, to, span, timeline) {
  const length = Math.min(span, Math.max(to - from, timeline.exact ? 10 : timeline.width * 2));
  const start = Math.min(Math.max(0, (from + to - length) / 2), span - length);
  return [start, start + length];
}

/** The sentence about what the chosen timeline shows, and what it cannot show. */
function honest(timeline, view, pixels) {
  const t = timeline, parts = [];
  parts.push(`${number(t.partitions)} partitions in ${number(t.rows.length)} rows` +
    (t.partitions > t.rows.length ? " (bundled)" : ""));
  parts.push(`${number(t.intervals)} intervals, ${number(t.intervals_below)} of them shorter than a column of ${duration(t.width)}`);
  parts.push(`${number(t.gaps)} gaps, ${duration(t.gap_ms)} over all partitions, ${number(t.gaps_below)} shorter than a column`);
  parts.push(`${number(t.overlaps)} overlaps, ${duration(t.overlap_ms)}, ${number(t.overlaps_below)} shorter than a column`);
  const pixel = (view[1] - view[0]) / pixels;
  let fine = `a pixel is ${duration(pixel)}: zoom in to see ${t.exact ? "each interval" : "single columns"}`;
  if (pixel < t.width) fine = t.exact ? "each interval is drawn here, to the millisecond" : "columns are wider than pixels here: zooming in shows no more";
  return `${parts.join(" · ")}. Each gap and overlap is at least one pixel wide; ${fine}.`;
}

/** Draws one timeline into a canvas and answers what is at a place in it. */
class Chart {
  constructor(canvas, data) {
    this.canvas = canvas;
    this.data = data;
    this.view = [0, data.span];
    this.wanted = "";
  }

  show(timeline) {
    this.timeline = timeline;
    this.draw();
  }

  zoom(from, to) {
    this.view = clamped(from, to, this.data.span, this.timeline);
    this.draw();
  }

  /** Whether intervals are drawn, and not cells: where a column is wider than a pixel. */
  get exact() { return this.timeline.exact && (this.view[1] - this.view[0]) / this.pixels < this.timeline.width; }
  get pixels() { return Math.max(50, this.canvas.clientWidth - GUTTER); }
  x(ms) { return GUTTER + (ms - this.view[0]) / (this.view[1] - this.view[0]) * this.pixels; }
  ms(x) { return this.view[0] + (x - GUTTER) / this.pixels * (this.view[1] - this.view[0]); }

  draw() {
    const rows = this.timeline.rows.length, scale = window.devicePixelRatio || 1;
    this.lane = rows === 1 ? 64 : rows > 48 ? 11 : LANE;
    const height = TOP + rows * this.lane + 22;
    this.canvas.style.height = `${height}px`;
    this.canvas.width = this.canvas.clientWidth * scale;
    this.canvas.height = height * scale;
    this.colours();
    const c = this.context = this.canvas.getContext("2d");
    c.scale(scale, scale);
    c.font = "11px system-ui, sans-serif";
    c.textBaseline = "middle";
    for (let row = 0; row < rows; row++) this.exact ? this.intervals(row) : this.row(row);
    this.labels(rows);
    this.axis(height);
    this.marks(height);
  }

  colours() {
    const style = getComputedStyle(document.documentElement);
    const named = (name) => style.getPropertyValue(`--${name}`).trim();
    this.palette = Array.from({ length: PALETTE }, (_, at) => named(`c${at}`));
    this.bare = named("lane");
    for (const name of ["page", "text", "quiet", "gap", "over", "many", "mark"]) this[name] = named(name);
  }

  row(row) {
    const t = this.timeline, run = t.rows[row], c = this.context;
    const y = TOP + row * this.lane, h = this.lane - (this.lane > 12 ? 2 : 1);
    c.fillStyle = this.bare;
    c.fillRect(GUTTER, y, this.pixels, h);
    const marked = [];
    let before = null;
    for (let at = 0; at < run.length; at += 3) {
      const from = run[at] * t.width, to = Math.min((run[at] + run[at + 1]) * t.width, this.data.span);
      if (to < this.view[0] || from > this.view[1]) continue;
      const cell = cellOf(t, run, at), [x, w] = this.place(from, to);
      if (cell.owned) this.owned(cell, x, y, w, h, before);
      if (cell.owned) before = cell.owner;
      this.frozen(cell, from, to, y, h);
      if (cell.gap || cell.overlap) marked.push([cell, x, w, Math.min(t.width, this.data.span - from)]);
    }
    for (const [cell, x, w, ms] of marked) this.trouble(cell, x, y, w, h, ms * t.names[row][2]);
  }

  /** The intervals of a row, if the page has them: gaps fill it, overlaps its upper half. */
  intervals(row) {
    const all = this.timeline.exact[row], c = this.context;
    const y = TOP + row * this.lane, h = this.lane - (this.lane > 12 ? 2 : 1);
    c.fillStyle = this.bare;
    c.fillRect(GUTTER, y, this.pixels, h);
    const marked = [];
    let before = null, reach = null;
    for (let at = 0; at < all.length; at += 3) {
      const [from, length, owner] = all.slice(at, at + 3), to = from + length;
      if (reach !== null && from !== reach) marked.push(from > reach ? [reach, from, this.gap, h] : [from, Math.min(reach, to), this.over, h / 2]);
      reach = Math.max(reach ?? to, to);
      if (to < this.view[0] || from > this.view[1]) continue;
      const [x, w] = this.place(from, to);
      this.owned({ owner }, x, y, w, h, before);
      this.frozen({ owner }, from, to, y, h);
      before = owner;
    }
    for (const [from, to, colour, high] of marked) {
      if (to < this.view[0] || from > this.view[1] || to <= from) continue;
      const [x, w] = this.place(from, to);
      c.fillStyle = colour;
      c.fillRect(x, y, w, high);
    }
  }

  /** A range as pixels, cut to the chart and at least one pixel wide. */
  place(from, to) {
    const x = Math.max(GUTTER, this.x(from)), end = Math.min(GUTTER + this.pixels, this.x(to));
    return [Math.min(x, GUTTER + this.pixels - 1), Math.max(1, end - x)];
  }

  owned(cell, x, y, w, h, before) {
    const c = this.context, name = this.timeline.owners[cell.owner] || "";
    c.globalAlpha = this.wanted && !name.includes(this.wanted) ? 0.15 : 1;
    c.fillStyle = cell.owner < 0 ? this.many : this.palette[cell.owner % PALETTE];
    c.fillRect(x, y, w + 0.3, h);
    c.globalAlpha = 1;
    if (before !== null && before !== cell.owner && w > 3) {
      c.fillStyle = this.page;
      c.fillRect(x, y, 1, h);
    }
  }

  /** A gap grows from the bottom, an overlap from the top, by their share of the cell. */
  trouble(cell, x, y, w, h, whole) {
    const c = this.context;
    if (cell.gap) {
      const high = Math.max(EDGE, Math.min(1, cell.gap / whole) * h);
      c.fillStyle = this.gap;
      c.fillRect(x, y + h - high, w, high);
    }
    if (cell.overlap) {
      const high = Math.max(EDGE + 1, Math.min(1, cell.overlap / whole) * h);
      c.fillStyle = this.over;
      c.fillRect(x, y, w, high);
    }
  }

  frozen(cell, from, to, y, h) {
    for (const [owner, since, until] of this.data.frozen) {
      if (this.timeline.owners[cell.owner] !== owner || until <= from || since >= to) continue;
      const [x, w] = this.place(Math.max(from, since), Math.min(to, until)), c = this.context;
      c.save();
      c.beginPath();
      c.rect(x, y, w, h);
      c.clip();
      c.strokeStyle = this.page;
      for (let at = x - h - (x - h) % 5; at < x + w; at += 5) {
        c.beginPath();
        c.moveTo(at, y + h);
        c.lineTo(at + h, y);
        c.stroke();
      }
      c.restore();
    }
  }

  labels(rows) {
    const c = this.context, step = Math.ceil(12 / this.lane);
    c.fillStyle = this.text;
    c.textAlign = "right";
    for (let row = 0; row < rows; row += step) {
      const text = fitted(c, rowName(this.timeline, row), GUTTER - 10);
      c.fillText(text, GUTTER - 6, TOP + (row + 0.5) * this.lane);
    }
  }

  axis(height) {
    const c = this.context, ticks = 6;
    c.fillStyle = this.quiet;
    for (let at = 0; at <= ticks; at++) {
      const ms = this.view[0] + (this.view[1] - this.view[0]) * at / ticks;
      c.textAlign = at === 0 ? "left" : at === ticks ? "right" : "center";
      c.fillText(instant(ms, this.view), this.x(ms), height - 9);
    }
  }

  marks(height) {
    const c = this.context;
    c.textAlign = "left";
    let free = 0;
    for (const [at, label] of this.data.marks) {
      if (at < this.view[0] || at > this.view[1]) continue;
      const x = this.x(at);
      c.fillStyle = this.mark;
      c.fillRect(x, TOP - 6, 1, height - TOP - 14);
      if (x < free) continue;
      c.fillText(fitted(c, label, 150), x, TOP - 14);
      free = x + Math.min(150, c.measureText(label).width) + 8;
    }
  }

  /** What is at a place, in words. */
  told(x, y) {
    const t = this.timeline, row = Math.floor((y - TOP) / this.lane), ms = this.ms(x);
    if (row < 0 || row >= t.rows.length || x < GUTTER || ms > this.data.span) return "";
    if (this.exact) return `${rowName(t, row)} · ${instant(ms, this.view)} · ${intervalWords(t, row, ms)}`;
    const column = Math.floor(ms / t.width), run = t.rows[row];
    const when = `${instant(column * t.width, this.view)} to ${instant((column + 1) * t.width, this.view)}`;
    for (let at = 0; at < run.length; at += 3) {
      if (run[at] <= column && column < run[at] + run[at + 1]) {
        return `${rowName(t, row)} · ${when} · ${cellWords(t, cellOf(t, run, at))}`;
      }
    }
    return `${rowName(t, row)} · ${when} · before the first owner, or after the last`;
  }
}

function rowName(t, row) {
  const [first, last, partitions] = t.names[row];
  if (!t.group && t.groups !== 1) return `${number(t.groups)} groups, ${number(partitions)} partitions`;
  return partitions === 1 ? first : `${first} … ${last} (${number(partitions)})`;
}

/** Who owned a partition at a time, from its intervals. */
function intervalWords(t, row, ms) {
  const all = t.exact[row], owners = [];
  let earlier = false, later = false;
  for (let at = 0; at < all.length; at += 3) {
    const [from, length, owner] = all.slice(at, at + 3);
    if (from <= ms && ms < from + length) owners.push(`${t.owners[owner]} for ${duration(length)}`);
    earlier ||= from <= ms;
    later ||= from > ms;
  }
  if (owners.length) return `owner ${owners.join(", and at once ")}`;
  return earlier && later ? "no owner" : "before the first owner, or after the last";
}

function cellWords(t, cell) {
  const words = [];
  if (cell.owner >= 0) words.push(`owner ${t.owners[cell.owner]}`);
  else if (cell.owners > 1) words.push(`${number(cell.owners)} owners`);
  if (cell.owned) words.push(`owned for ${duration(cell.owned)}`);
  if (cell.gap) words.push(`no owner for ${duration(cell.gap)}, ${number(cell.gaps)} gaps begin here`);
  if (cell.overlap) words.push(`two owners for ${duration(cell.overlap)}, ${number(cell.overlaps)} overlaps begin here`);
  return `${words.join(" · ")} (times over all partitions of the row)`;
}

/** A text cut to a width. */
function fitted(c, text, width) {
  if (c.measureText(text).width <= width) return text;
  let length = Math.min(text.length, 60);
  while (length > 1 && c.measureText(`${text.slice(0, length)}…`).width > width) length--;
  return `${text.slice(0, length)}…`;
}

/** Numbers by their value, texts by the alphabet; what has no value comes last. */
function compared(a, b) {
  const x = a.dataset.v, y = b.dataset.v;
  if (x !== undefined || y !== undefined) {
    if (x === undefined || y === undefined) return x === undefined ? 1 : -1;
    return Number(x) - Number(y);
  }
  return a.textContent < b.textContent ? -1 : a.textContent > b.textContent ? 1 : 0;
}

/** Make a table sort by its heads and filter by a text. */
function living(section) {
  const table = section.querySelector("table");
  if (!table) return;
  const body = table.tBodies[0], rows = [...body.rows], heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, at) => head.firstElementChild.addEventListener("click", () => {
    const up = head.getAttribute("aria-sort") !== "ascending";
    heads.forEach((each) => each.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const sign = up ? 1 : -1;
    body.append(...rows.sort((a, b) => sign * compared(a.cells[at], b.cells[at])));
  }));
  const filter = section.querySelector("input"), count = section.querySelector("output");
  filter.addEventListener("input", () => {
    const wanted = filter.value.toLowerCase();
    let shown = 0;
    for (const row of rows) {
      row.hidden = !row.textContent.toLowerCase().includes(wanted);
      shown += row.hidden ? 0 : 1;
    }
    count.textContent = `${number(shown)} of ${number(rows.length)} rows`;
  });
}

/** Names of timelines for the picker. */
function option(t, at) {
  const made = document.createElement("option");
  made.value = at;
  const what = `${number(t.partitions)} partitions, ${number(t.intervals)} intervals`;
  made.textContent = t.group || t.groups === 1 ? `${t.group} — ${what}` : `all ${number(t.groups)} other groups in one strip — ${what}`;
  return made;
}

/** The key of colours: the first owners by name, and how many more there are. */
function key(list, t) {
  list.replaceChildren();
  const item = (colour, text) => {
    const li = document.createElement("li"), box = document.createElement("i"), name = document.createElement("bdi");
    box.style.background = `var(--${colour})`;
    name.textContent = text;
    li.append(box, name);
    list.append(li);
  };
  t.owners.slice(0, PALETTE).forEach((name, at) => item(`c${at}`, name));
  if (t.owners.length > PALETTE) item("page", `${number(t.owners.length - PALETTE)} more owners share these ${PALETTE} colours: point at a cell for its name`);
  item("many", "several owners in one cell");
  item("gap", "from below: nobody, between two owners");
  item("over", "from above: two owners at once");
  item("lane", "before the first owner, or after the last");
}

function choosing(data) {
  const picker = byId("group"), find = byId("find"), chart = new Chart(byId("chart"), data);
  const options = data.timelines.map(option);
  const refresh = () => {
    byId("honest").textContent = honest(chart.timeline, chart.view, chart.pixels);
    byId("out").disabled = byId("all").disabled = chart.view[1] - chart.view[0] >= data.span;
  };
  const choose = (at) => {
    picker.value = at;
    key(byId("key"), data.timelines[at]);
    chart.show(data.timelines[at]);
    refresh();
  };
  picker.append(...options);
  picker.addEventListener("change", () => choose(Number(picker.value)));
  find.addEventListener("input", () => {
    const wanted = find.value.toLowerCase();
    const fitting = options.filter((each) => each.textContent.toLowerCase().includes(wanted));
    picker.replaceChildren(...fitting);
    if (fitting.length) choose(Number(fitting[0].value));
  });
  byId("owner").addEventListener("input", () => {
    chart.wanted = byId("owner").value;
    chart.draw();
  });
  document.querySelectorAll("a[data-timeline]").forEach((link) => link.addEventListener("click", () => {
    picker.replaceChildren(...options);
    choose(Number(link.dataset.timeline));
  }));
  zooming(chart, refresh);
  choose(0);
}

function zooming(chart, refresh) {
  const { canvas } = chart;
  const by = (factor, at) => {
    const [from, to] = chart.view, middle = at ?? (from + to) / 2;
    chart.zoom(middle - (middle - from) * factor, middle + (to - middle) * factor);
    refresh();
  };
  const shift = (share) => {
    const [from, to] = chart.view, by_ = (to - from) * share;
    chart.zoom(from + by_, to + by_);
    refresh();
  };
  const whole = () => { chart.zoom(0, chart.data.span); refresh(); };
  const buttons = { in: () => by(0.5), out: () => by(2), left: () => shift(-0.5), right: () => shift(0.5), all: whole };
  for (const [id, act] of Object.entries(buttons)) byId(id).addEventListener("click", act);
  let from = null;
  canvas.addEventListener("pointerdown", (event) => { from = event.offsetX; canvas.setPointerCapture(event.pointerId); });
  canvas.addEventListener("pointerup", (event) => {
    if (from !== null && Math.abs(event.offsetX - from) > 5) {
      const ends = [chart.ms(from), chart.ms(event.offsetX)].sort((a, b) => a - b);
      chart.zoom(...ends);
      refresh();
    }
    from = null;
  });
  canvas.addEventListener("pointermove", (event) => { byId("told").textContent = chart.told(event.offsetX, event.offsetY); });
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    by(event.deltaY > 0 ? 1.25 : 0.8, chart.ms(event.offsetX));
  }, { passive: false });
  window.addEventListener("resize", () => { chart.draw(); refresh(); });
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => chart.draw());
}

document.querySelectorAll("section.table").forEach(living);
if (byId("data")) {
  const data = JSON.parse(byId("data").textContent);
  if (data.timelines.length) choosing(data);
}
