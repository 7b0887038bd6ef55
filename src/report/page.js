// The report, from the data in the page.

function trackOf(values, interval, scale, fraction) {
  const at = (value) => `${(100 * (Math.min(Math.max(value, scale.low), scale.high) - scale.low)) / (scale.high - scale.low || 1)}%`;
  const track = element("div", { class: "track", "aria-hidden": "true" });
  if (scale.zero) track.append(element("div", { class: "zero", style: { left: at(0) } }));
  if (interval.mean === null || interval.mean === undefined) return track;
  if (interval.low !== null) {
    track.append(element("div", { class: "interval", style: { left: at(interval.low), right: `calc(100% - ${at(interval.high)})` } }));
  }
  for (const value of values) if (value !== null) track.append(element("div", { class: "one", style: { left: at(value) } }));
  track.append(element("div", { class: "mean", style: { left: at(interval.mean) } }));
  track.title = interval.low === null ? shown(interval.mean, fraction) : `${shown(interval.low, fraction)} to ${shown(interval.high, fraction)}`;
  return track;
}

function scaleOf(rows, zero) {
  const numbers = rows.flatMap((row) => [row.low, row.high, row.mean, ...(row.values ?? [])]).filter((value) => value !== null && value !== undefined);
  if (zero) numbers.push(0);
  const low = Math.min(...numbers), high = Math.max(...numbers), margin = 0.05 * (high - low) || 0.01;
  return { low: low - margin, high: high + margin, zero };
}

function metricTables(metric, what) {
  const sized = metric.settings.some((row) => row.size);
  const unit = metric.fraction ? ", %" : "";
  const several = metric.settings.length > 1 || metric.settings[0].values.length > 1;
  const sizes = sized ? [{ name: "mean set size", number: true }] : [];
  const bars = several ? ["mean, 95 % interval, runs"] : [];
  const cells = (row, scale) => [row.text + (row.warning ? " !" : ""), ...(sized ? [row.size ?? null] : []),
    ...(several ? [trackOf(row.values ?? [], row, scale, metric.fraction)] : [])];
  const scale = scaleOf(metric.settings, false);
  const parts = [element("h3", {}, metric.metric),
    table(["setting", ...(what ? ["what differs"] : []), { name: "value" + unit, number: true }, ...sizes, ...bars, "checkpoint"],
      metric.settings.map((row) => [row.setting, ...(what ? [what[row.setting]] : []), ...cells(row, scale), row.checkpoints.join(", ")]))];
  if (metric.differences.length) {
    const differences = scaleOf(metric.differences, true);
    parts.push(table(["difference", { name: "by seed" + unit, number: true }, ...sizes, "mean, 95 % interval"],
      metric.differences.map((row) => [`${row.setting} − ${metric.against}`, ...cells(row, differences)])));
  }
  return parts;
}

function resultsSection(report) {
  const comparison = report.comparison;
  const several = comparison.metrics[0].settings.length > 1;
  // At most three keys a setting: the table of settings has them all.
  const what = several ? Object.fromEntries(comparison.metrics[0].settings.map((row, i) => [row.setting,
    comparison.keys.slice(0, 3).map(([key, values]) => `${key.split(".").pop()} ${values[i] ?? "–"}`).join(", ") + (comparison.keys.length > 3 ? ", …" : "")])) : null;
  const parts = comparison.metrics.flatMap((metric) => metricTables(metric, what));
  const seeds = Math.max(...comparison.metrics[0].settings.map((row) => row.values.length));
  if (seeds > 1) parts.push(element("p", { class: "quiet" }, "Mean over seeds ± half of the 95 % interval of the mean, by Student's t."));
  else parts.push(element("p", { class: "quiet" }, "One seed: no interval."));
  if (comparison.metrics.some((metric) => [...metric.settings, ...metric.differences].some((row) => row.warning))) {
    parts.push(element("p", { class: "quiet" }, "!: two seeds; the half-width of the interval is 12.7 standard errors, so it is uninformative."));
  }
  return parts;
}

function runsSection(report) {
  const state = (run) => (run.finished ? "finished" : `${run.curves.epoch.at(-1) ?? 0} of ${run.epochs} epochs`);
  const parts = [table(["run", "setting", { name: "seed", number: true }, "state", "begun", "folder"], report.runs.map((run) => [
    run.name, run.setting, String(run.seed), state(run), run.provenance?.date?.replace("T", "\u00a0").replace("Z", "\u00a0UTC") ?? null, run.folder]))];
  const keys = report.comparison?.keys ?? [];
  if (keys.length) {
    parts.push(element("h3", {}, "Keys that differ"),
      table(["key", ...report.comparison.metrics[0].settings.map((row) => row.setting)].map((name) => ({ name, break: true })), keys.map(([key, values]) => [key, ...values])));
  } else if (report.comparison && report.comparison.metrics[0].settings.length > 1) {
    parts.push(element("p", {}, "No key differs: the same setting was run with the same seed more than once."));
  }
  return parts;
}

function curvesSection(report) {
  const runs = report.runs.filter((run) => run.curves.epoch.length);
  if (!runs.length) return [element("p", {}, "No epoch is completed yet.")];
  const styles = runStyles(runs), hidden = new Set(), charts = new Map();
  const figures = report.curves.map((metric) => curveFigure(metric, runs, styles, hidden, charts));
  return [...(runs.length > 1 ? [curveLegend(runs, styles, hidden, charts)] : []), element("div", { class: "charts" }, figures)];
}

function provenanceRows(provenance) {
  const text = (value) => (Array.isArray(value) && value.every((one) => typeof one !== "object") ? value.join(" ") : typeof value === "object" ? JSON.stringify(value) : String(value));
  return Object.entries(provenance).map(([name, value]) => [name.replaceAll("_", " "), text(value)]);
}

function runRecord(run) {
  const results = run.results.flatMap((one) => [element("h3", {}, one.checkpoint), element("p", { class: "quiet" }, "Accuracies in percent."),
    table(["metric", ...one.columns.map((name) => ({ name, number: true }))], one.rows)]);
  const changed = run.changed.length ? table(["key", "value", "default"].map((name) => ({ name, break: true })), run.changed) : element("p", {}, "Nothing: every key has its default.");
  return [
    element("h3", {}, run.name),
    results.length ? folded("All results", results) : null,
    folded(`Keys that are not at their defaults (${run.changed.length})`, changed),
    folded("Resolved configuration", element("pre", {}, run.config)),
    folded("Provenance: version, commit, seed, threads, device",
      run.provenance ? table(["", { name: "", break: true }], provenanceRows(run.provenance)) : element("p", {}, "provenance.json is missing or damaged.")),
  ];
}

function drawReport(report) {
  const main = document.getElementById("report");
  const sections = [];
  const section = (id, title, parts) => sections.push({ id, title, parts });
  if (report.comparison) section("results", "Results", resultsSection(report));
  section("runs", report.runs.length > 1 ? "Runs and settings" : "Run", runsSection(report));
  section("curves", "Training curves", curvesSection(report));
  report.shown.forEach((one, i) => section("shown-" + i, "Predictions of " + report.runs[one.run].name, shownRun(one, report.runs)));
  for (const run of report.runs) if (run.calibrations.length) section("sets-" + run.name, "Calibrated sets of " + run.name, run.calibrations.flatMap(calibrationParts));
  section("records", "Configuration and provenance", report.runs.flatMap(runRecord));
  main.replaceChildren(
    element("header", {},
      element("h1", {}, report.title),
      element("p", { class: "quiet" }, `A report on ${report.runs.length === 1 ? "a run" : report.runs.length + " runs"}, made ${report.date} by settrain ${report.settrain}.`),
      report.notes.map((note) => element("p", { class: "note" }, note)),
      element("nav", { "aria-label": "Contents" }, sections.map(({ id, title }) => element("a", { href: "#" + id }, title)))),
    ...sections.map(({ id, title, parts }) => element("section", { id }, element("h2", {}, title), parts)));
  Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
  const draw = () => redraws.forEach((one) => one());
  draw();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
}

drawReport(JSON.parse(document.getElementById("data").textContent));
