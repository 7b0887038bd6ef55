// Elements and charts. All text goes in as text, never as HTML.

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "class") made.className = value;
    else if (name === "style") Object.assign(made.style, value);
    else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value);
  }
  made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return made;
}

/** `columns`: texts, or {name, number, break}; `rows`: lists of texts, elements or null. */
function table(columns, rows) {
  const kinds = columns.map((column) => (typeof column === "string" ? { name: column } : column));
  const kind = (i) => [kinds[i].number ? "number" : "", kinds[i].break ? "break" : ""].join(" ").trim();
  const cell = (tag) => (content, i) => element(tag, { class: kind(i), ...(tag === "th" ? { scope: "col" } : {}) }, content ?? "–");
  return element("div", { class: "scroll", tabindex: "0" }, element("table", {},
    element("thead", {}, element("tr", {}, kinds.map((column, i) => cell("th")(column.name, i)))),
    element("tbody", {}, rows.map((row) => element("tr", {}, row.map(cell("td")))))));
}

function folded(title, ...children) {
  return element("details", {}, element("summary", {}, title), children);
}

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
}

const SERIES = 7;
const seriesColour = (i) => colour("series-" + (i % SERIES));

/** Numbers of a kind, for people: accuracies in percent with two digits. */
function shown(value, fraction) {
  if (value === null || value === undefined) return "–";
  if (fraction) return (100 * value).toFixed(2);
  return String(Number(value.toPrecision(4)));
}

const redraws = [];

function axis(title, more = {}) {
  const { ticks, ...rest } = more;
  return {
    title: { display: true, text: title, color: colour("text") },
    ticks: { color: colour("quiet"), maxRotation: 0, autoSkipPadding: 12, ...ticks },
    grid: { color: colour("line"), borderColor: colour("quiet") },
    ...rest,
  };
}

/** A logarithmic axis around positive `values`, with numbers at 1, 2 and 5 of each decade, or at 1 where there are many. */
function logAxis(title, values) {
  const least = Math.min(...values), most = Math.max(...values);
  const leading = most / least > 200 ? [1] : [1, 2, 5];
  const label = (value) => (leading.includes(Math.round(value / 10 ** Math.floor(Math.log10(value) + 1e-9))) ? value.toLocaleString("en") : "");
  return axis(title, { type: "logarithmic", min: least / 1.5, max: most * 1.5, ticks: { callback: label, autoSkip: false } });
}

/**
 * A chart with its caption, and its numbers as a table. `make()` gives Chart.js' type, data, scales and what else its options have; it is asked
 * again where the colours change. `onMade` gets each chart that is made.
 */
function chartFigure(caption, description, make, numbers, onMade = () => {}) {
  const canvas = element("canvas", { role: "img", "aria-label": description });
  const figure = element("figure", {}, element("figcaption", {}, caption), element("div", { class: "canvas" }, canvas), folded("The numbers", numbers));
  let chart = null;
  const draw = () => {
    chart?.destroy();
    const { type, data, scales, plugins } = make();
    chart = new Chart(canvas, {
      type, data,
      options: { animation: false, maintainAspectRatio: false, scales, plugins: { legend: { display: false }, ...plugins } },
    });
    onMade(chart);
  };
  redraws.push(draw);
  return figure;
}

function legendBelow() {
  return { position: "bottom", labels: { color: colour("text"), usePointStyle: true } };
}

const DASHES = [[], [7, 4], [2, 3], [9, 3, 2, 3], [14, 4], [4, 2, 1, 2]];
const POINTS = ["circle", "rect", "triangle", "rectRot", "star"];

/** How each run is drawn: settings by colour, the runs of one setting by dashes. */
function runStyles(runs) {
  const settings = [...new Set(runs.map((run) => run.setting))];
  const seen = {};
  return runs.map((run) => {
    const setting = settings.indexOf(run.setting);
    const place = (seen[run.setting] = (seen[run.setting] ?? -1) + 1);
    return { setting, dash: DASHES[place % DASHES.length], point: POINTS[Math.floor(setting / SERIES) % POINTS.length] };
  });
}

function curveFigure(metric, runs, styles, hidden, charts) {
  const epochs = [...new Set(runs.flatMap((run) => run.curves.epoch))].sort((a, b) => a - b);
  const named = { "train/loss": "mean loss of the epoch", "train/lr": "learning rate" }[metric.name] ?? metric.name;
  const title = metric.fraction ? named + ", %" : named;
  const points = (run) => run.curves.epoch
    .map((x, i) => ({ x, y: run.curves.values[metric.name]?.[i] ?? null }))
    .filter((point) => point.y !== null)
    .map((point) => ({ x: point.x, y: metric.fraction ? 100 * point.y : point.y }));
  const make = () => ({
    type: "line",
    data: {
      datasets: runs.map((run, i) => ({
        label: runLabel(run, runs), data: points(run), hidden: hidden.has(i), borderColor: seriesColour(styles[i].setting),
        backgroundColor: seriesColour(styles[i].setting), borderDash: styles[i].dash, pointStyle: styles[i].point, borderWidth: 2, tension: 0,
        pointRadius: epochs.length > 40 ? 0 : 3,
      })),
    },
    scales: { x: axis("epochs completed", { type: "linear", ticks: { precision: 0 } }), y: axis(title) },
    plugins: { tooltip: { callbacks: { title: (items) => "epoch " + items[0].parsed.x } } },
  });
  const rows = epochs.map((epoch) => [String(epoch), ...runs.map((run) => {
    const i = run.curves.epoch.indexOf(epoch);
    return i < 0 ? null : shown(run.curves.values[metric.name]?.[i], metric.fraction);
  })]);
  const numbers = table([{ name: "epoch", number: true }, ...runs.map((run) => ({ name: runLabel(run, runs), number: true }))], rows);
  return chartFigure(title, `${title} by epoch, ${runs.length} ${runs.length === 1 ? "run" : "runs"}; the table below has the numbers`, make, numbers,
    (chart) => charts.set(metric.name, chart));
}

const runLabel = (run, runs) => (runs.length === 1 ? run.name : `${run.setting}: ${run.name}`);

/** One legend for all curves, that shows and hides runs. */
function curveLegend(runs, styles, hidden, charts) {
  const swatch = (style) => {
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("width", 28);
    svg.setAttribute("height", 10);
    const line = document.createElementNS("http://www.w3.org/2000/svg", "line");
    for (const [name, value] of Object.entries({ x1: 0, x2: 28, y1: 5, y2: 5, "stroke-width": 3, "stroke-dasharray": style.dash.join(" ") })) {
      line.setAttribute(name, value);
    }
    line.style.stroke = `var(--series-${style.setting % SERIES})`;
    svg.append(line);
    return svg;
  };
  const toggle = (i) => (event) => {
    hidden.has(i) ? hidden.delete(i) : hidden.add(i);
    event.currentTarget.setAttribute("aria-pressed", String(!hidden.has(i)));
    for (const chart of charts.values()) chart.setDatasetVisibility(i, !hidden.has(i)), chart.update();
  };
  return element("ul", { class: "legend" }, runs.map((run, i) => element("li", {},
    element("button", { type: "button", "aria-pressed": "true", title: "show or hide", onclick: toggle(i) }, swatch(styles[i]), runLabel(run, runs)))));
}
