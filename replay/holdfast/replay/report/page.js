// The page's own behaviour beside its timeline: choice, zoom, tables. It fetches nothing.
// Texts reach the page as textContent, never as markup.

/** Where an element of a page is asked for by its id. */
const byId = (id) => document.getElementById(id);

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
  const numbers = heads.flatMap((head, at) => head.className === "n" ? [at] : []);
  rows.forEach((row) => numbers.forEach((at) => row.cells[at].classList.add("n")));
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
  const what = `${many(t.partitions, "partition")}, ${many(t.intervals, "interval")}`;
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
    li.append(...(colour ? [box] : []), name);
    list.append(li);
  };
  t.owners.slice(0, PALETTE).forEach((name, at) => item(`c${at}`, name));
  if (t.owners.length > PALETTE) item("", `${many(t.owners.length - PALETTE, "more owner")} in these ${PALETTE} colours: point at a cell for its name`);
  item("many", "several owners in one cell");
  item("gap", "from below: nobody, between two owners");
  item("over", "from above: two owners at once");
  item("lane", "before the first owner, or after the last");
}

/** How many of the owners that are drawn a text highlights; who shares all cells is not among them. */
function highlighted(t, wanted) {
  if (!wanted) return "";
  const found = t.owners.filter((name) => name.includes(wanted)).length;
  return `${number(found)} of ${many(t.owners.length, "owner")} drawn here`;
}

/** On paper all is in light colours, whatever the screen has. */
function printing(chart) {
  const { classList } = document.documentElement;
  window.addEventListener("beforeprint", () => { classList.add("paper"); chart.draw(); });
  window.addEventListener("afterprint", () => { classList.remove("paper"); chart.draw(); });
}

function choosing(data) {
  const picker = byId("group"), find = byId("find"), chart = new Chart(byId("chart"), data);
  const options = data.timelines.map(option);
  const refresh = () => {
    byId("honest").textContent = honest(chart.timeline, chart.view, chart.pixels, chart.nameless);
    byId("out").disabled = byId("all").disabled = chart.view[1] - chart.view[0] >= data.span;
  };
  const choose = (at) => {
    picker.value = at;
    key(byId("key"), data.timelines[at]);
    chart.show(data.timelines[at]);
    byId("owners").textContent = highlighted(chart.timeline, chart.wanted);
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
    byId("owners").textContent = highlighted(chart.timeline, chart.wanted);
  });
  document.querySelectorAll("a[data-timeline]").forEach((link) => link.addEventListener("click", () => {
    picker.replaceChildren(...options);
    choose(Number(link.dataset.timeline));
  }));
  zooming(chart, refresh);
  printing(chart);
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
