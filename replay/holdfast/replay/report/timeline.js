"use strict";
// Draws one timeline of owners into a canvas, and tells in words what is at a place of it.
// Texts reach the page as textContent or on the canvas, never as markup.

const PALETTE = 8, GUTTER_MAX = 190, GUTTER_SHARE = 0.36, LANE = 16, TOP = 26, EDGE = 2;

/** Milliseconds for people. */
function duration(ms) {
  const size = Math.abs(ms);
  if (size < 1000) return `${size < 10 ? Math.round(ms * 100) / 100 : Math.round(ms)} ms`;
  if (size < 120000) return `${(ms / 1000).toFixed(1)} s`;
  if (size < 7200000) return `${(ms / 60000).toFixed(1)} min`;
  return `${(ms / 3600000).toFixed(1)} h`;
}

const number = (n) => n.toLocaleString("en");

/** A number of things, whose name has no other plural than with an s. */
const many = (n, thing) => `${number(n)} ${thing}${n === 1 ? "" : "s"}`;

const CLOCK_MS = 1000000, DAY_MS = 86400000;
const CLOCK_STEPS_S = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200];

/** Milliseconds between two times on an axis that ends at `until`: round, and at least so many. */
function roundStep(least, until) {
  const clock = until >= CLOCK_MS && least > 500;
  const known = clock && CLOCK_STEPS_S.map((s) => s * 1000).find((step) => step >= least);
  if (known) return known;
  const unit = clock ? DAY_MS : 1, power = unit * 10 ** Math.floor(Math.log10(Math.max(least / unit, 1)));
  return [1, 2, 5, 10].map((n) => n * power).find((step) => step >= least);
}

/** A time on an axis: seconds, as tables have them, while they are few, else as a clock has it. */
function tick(ms, step, until) {
  const digits = step % 1000 === 0 ? 0 : step % 100 === 0 ? 1 : step % 10 === 0 ? 2 : 3;
  if (until < CLOCK_MS) return `+${(ms / 1000).toFixed(digits)} s`;
  const unit = 10 ** (3 - digits), whole = Math.round(ms / unit) * unit; // before it is split: no 60th second
  const seconds = (whole % 60000 / 1000).toFixed(digits).padStart(digits ? digits + 3 : 2, "0");
  const minutes = String(Math.floor(whole / 60000) % 60).padStart(2, "0");
  return `+${Math.floor(whole / 3600000)}:${minutes}:${seconds}`;
}

/** A time since the first record, as the axis has it; with milliseconds where columns are fine. */
function instant(ms, timeline, view) {
  return tick(ms, timeline.exact || timeline.width < 1000 ? 1 : 100, view[1]);
}

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
function honest(timeline, view, pixels, nameless) {
  const t = timeline, parts = [];
  parts.push(`${many(t.partitions, "partition")} in ${many(t.rows.length, "row")}` +
    (t.partitions > t.rows.length ? " (bundled)" : ""));
  parts.push(`${many(t.intervals, "interval")}, ${number(t.intervals_below)} of them shorter than a column of ${duration(t.width)}`);
  parts.push(`${many(t.gaps, "gap")}, ${duration(t.gap_ms)} over all partitions, ${number(t.gaps_below)} shorter than a column`);
  parts.push(`${many(t.overlaps, "overlap")}, ${duration(t.overlap_ms)}, ${number(t.overlaps_below)} shorter than a column`);
  if (nameless) parts.push(`${many(nameless, "mark")} without a name, for want of room: zoom in to read it`);
  const pixel = (view[1] - view[0]) / pixels;
  let fine = `a pixel is ${duration(pixel)}: zoom in to see ${t.exact ? "each interval" : "single columns"}`;
  if (pixel < t.width) fine = t.exact ? "each interval is drawn here, to the millisecond" : "columns are wider than pixels here: zooming in shows no more";
  return `${parts.join(" · ")}. Each gap and overlap is at least two pixels wide; ${fine}.`;
}

/** Draws one timeline into a canvas and answers what is at a place in it. */
class Chart {
  constructor(canvas, data) {
    this.canvas = canvas;
    this.data = data;
    this.view = [0, data.span];
    this.wanted = "";
    this.gutter = GUTTER_MAX;
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
  get pixels() { return Math.max(50, this.canvas.clientWidth - this.gutter); }
  x(ms) { return this.gutter + (ms - this.view[0]) / (this.view[1] - this.view[0]) * this.pixels; }
  ms(x) { return this.view[0] + (x - this.gutter) / this.pixels * (this.view[1] - this.view[0]); }

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
    this.fit(rows);
    for (let row = 0; row < rows; row++) this.exact ? this.intervals(row) : this.row(row);
    this.labels(rows);
    this.axis(height);
    this.marks(height);
  }

  /** As much room for names as they need, and no more: a phone has little of it. */
  fit(rows) {
    const c = this.context, most = Math.min(GUTTER_MAX, this.canvas.clientWidth * GUTTER_SHARE);
    let widest = 20;
    for (let row = 0; row < rows; row++) widest = Math.max(widest, c.measureText(rowName(this.timeline, row)).width);
    this.gutter = Math.ceil(Math.min(most, widest + 12));
    this.canvas.dataset.gutter = this.gutter;
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
    c.fillRect(this.gutter, y, this.pixels, h);
    const marked = [];
    let before = null;
    for (let at = 0; at < run.length; at += 3) {
      const from = run[at] * t.width, to = Math.min((run[at] + run[at + 1]) * t.width, this.data.span);
      if (to < this.view[0] || from > this.view[1]) continue;
      const cell = cellOf(t, run, at), [x, w] = this.place(from, to);
      if (cell.owned) this.owned(cell, x, y, w, h, before);
      if (cell.owned) before = cell.owner;
      this.frozen(cell, from, to, y, h);
      if (cell.gap || cell.overlap) marked.push([cell, ...this.place(from, to, EDGE), Math.min(t.width, this.data.span - from)]);
    }
    for (const [cell, x, w, ms] of marked) this.trouble(cell, x, y, w, h, ms * t.names[row][2]);
  }

  /** The intervals of a row, if the page has them: gaps fill it, overlaps its upper half. */
  intervals(row) {
    const all = this.timeline.exact[row], c = this.context;
    const y = TOP + row * this.lane, h = this.lane - (this.lane > 12 ? 2 : 1);
    c.fillStyle = this.bare;
    c.fillRect(this.gutter, y, this.pixels, h);
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
      const [x, w] = this.place(from, to, EDGE);
      c.fillStyle = colour;
      c.fillRect(x, y, w, high);
    }
  }

  /** A range as pixels, cut to the chart and at least so many pixels wide. */
  place(from, to, least = 1) {
    const left = this.gutter, right = left + this.pixels;
    const x = Math.max(left, this.x(from)), end = Math.min(right, this.x(to));
    return [Math.min(x, right - least), Math.max(least, end - x)];
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
      const text = fitted(c, rowName(this.timeline, row), this.gutter - 10);
      c.fillText(text, this.gutter - 6, TOP + (row + 0.5) * this.lane);
    }
  }

  axis(height) {
    const c = this.context, [from, until] = this.view, edge = this.canvas.clientWidth;
    const pixel = (until - from) / this.pixels, room = (step) => c.measureText(tick(until, step, until)).width * 1.5 + 16;
    const step = roundStep(pixel * room(roundStep(pixel * 70, until)), until);
    c.fillStyle = this.quiet;
    c.textAlign = "left";
    for (let ms = Math.ceil(from / step) * step; ms <= until; ms += step) {
      const text = tick(ms, step, until), width = c.measureText(text).width, x = this.x(ms);
      c.fillRect(x, height - 20, 1, 4);
      c.fillText(text, Math.max(0, Math.min(x - width / 2, edge - width)), height - 9);
    }
  }

  marks(height) {
    const c = this.context;
    c.textAlign = "left";
    let free = 0;
    this.nameless = 0;
    for (const [at, label] of this.data.marks) {
      if (at < this.view[0] || at > this.view[1]) continue;
      const x = this.x(at);
      c.fillStyle = this.mark;
      c.fillRect(x, TOP - 6, 1, height - TOP - 14);
      const text = fitted(c, label, 150), width = c.measureText(text).width;
      const left = Math.max(0, Math.min(x, this.canvas.clientWidth - width));
      if (left < free) {
        this.nameless++;
        continue;
      }
      c.fillText(text, left, TOP - 14);
      free = left + width + 8;
    }
  }

  /** What is at a place, in words. */
  told(x, y) {
    const t = this.timeline, row = Math.floor((y - TOP) / this.lane), ms = this.ms(x);
    if (row < 0 || row >= t.rows.length || x < this.gutter || ms > this.data.span) return "";
    if (this.exact) return `${rowName(t, row)} · ${instant(ms, t, this.view)} · ${intervalWords(t, row, ms)}`;
    const column = Math.floor(ms / t.width), run = t.rows[row];
    const end = Math.min((column + 1) * t.width, this.data.span); // the last column goes on behind the log
    const when = `${instant(column * t.width, t, this.view)} to ${instant(end, t, this.view)}`;
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
  if (cell.gap) words.push(`no owner for ${duration(cell.gap)}, ${many(cell.gaps, "gap")} begin${cell.gaps === 1 ? "s" : ""} here`);
  if (cell.overlap) words.push(`two owners for ${duration(cell.overlap)}, ${many(cell.overlaps, "overlap")} begin${cell.overlaps === 1 ? "s" : ""} here`);
  return `${words.join(" · ")} (times over all partitions of the row)`;
}

/** A text cut to a width. */
function fitted(c, text, width) {
  if (c.measureText(text).width <= width) return text;
  let length = Math.min(text.length, 60);
  while (length > 1 && c.measureText(`${text.slice(0, length)}…`).width > width) length--;
  return `${text.slice(0, length)}…`;
}
