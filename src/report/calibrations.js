// What `settrain calibrate` measured of a checkpoint.

function ruleCharts(calibration) {
  const rules = calibration.rules.filter((rule) => rule.by_alpha.length);
  const drawn = rules.map((one, i) => ({ ...one, i, points: one.by_alpha.map(({ alpha, coverage, mean_size }) => ({ x: mean_size, y: 100 * coverage, alpha })) }));
  const style = (i) => ({ backgroundColor: seriesColour(i) + "a0", borderColor: seriesColour(i), pointStyle: POINTS[i % POINTS.length], borderDash: DASHES[i % DASHES.length] });
  const counts = calibration.train_counts;
  const place = (count) => Math.max(count, 0.5); // as in the chart of accuracies
  const classes = (one) => one.quality.class_coverage.map((coverage, c) => ({ x: place(counts[c]), y: 100 * coverage, c, tested: coverage !== null })).filter((point) => point.tested);
  const byClass = () => ({
    type: "scatter",
    data: { datasets: drawn.map((one) => ({ label: one.rule, data: classes(one), pointRadius: 4, ...style(one.i) })) },
    scales: { x: logAxis("training images of the class", counts.map(place)), y: axis("coverage of the class, %", { min: 0, max: 100 }) },
    plugins: { legend: legendBelow() },
  });
  const byAlpha = () => ({
    type: "line",
    data: { datasets: drawn.map((one) => ({ label: one.rule, data: one.points, borderWidth: 2, tension: 0, ...style(one.i) })) },
    scales: { x: logAxis("mean size of the sets", drawn.flatMap((one) => one.points.map((point) => Math.max(point.x, 0.1)))), y: axis("coverage, %", { max: 100 }) },
    plugins: { legend: legendBelow() },
  });
  const number = (name) => ({ name, number: true });
  const classNumbers = table([number("class"), number("training images"), ...drawn.map((one) => number(one.rule + ", %"))],
    counts.map((count, c) => [String(c), String(count), ...drawn.map((one) => shown(one.quality.class_coverage[c], true))]));
  const alphaNumbers = table(["rule", number("alpha"), number("coverage, %"), number("mean size")],
    drawn.flatMap((one) => one.by_alpha.map(({ alpha, coverage, mean_size }) => [one.rule, String(alpha), shown(coverage, true), shown(mean_size)])));
  return [
    ...(counts.length ? [chartFigure("Coverage by class, against its training images", "coverage of each class; the table below has the numbers", byClass, classNumbers)] : []),
    chartFigure("Coverage and size, alpha from 0.4 to 0.01", "coverage against mean size of the sets; the table below has the numbers", byAlpha, alphaNumbers),
  ];
}

function calibrationParts(calibration) {
  const percent = (value) => shown(value, true);
  const columns = ["coverage, %", "95 % interval", "mean size", "macro, %", "few, %", "medium, %", "many, %", "classes under 50, %"];
  const rows = calibration.rules.map(({ rule, quality }) => [rule, percent(quality.coverage), quality.interval.map(percent).join(" to "), shown(quality.mean_size),
    percent(quality.macro_coverage), percent(quality.few_coverage), percent(quality.medium_coverage), percent(quality.many_coverage), percent(quality.below_half)]);
  return [
    element("h3", {}, calibration.checkpoint),
    element("p", { class: "quiet" }, `Calibrated on ${calibration.calibrated_on}, judged on ${calibration.judged_on}.`),
    table(["rule", ...columns.map((name) => ({ name, number: true }))], rows),
    folded("What is promised", element("ul", {}, calibration.rules.map(({ rule, guarantee }) => element("li", {}, `${rule}: ${guarantee}`)))),
    ...(calibration.rules.some((rule) => rule.by_alpha.length) ? [element("div", { class: "charts" }, ruleCharts(calibration))] : []),
  ];
}
