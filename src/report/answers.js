// What one run answers to images.

const LARGEST_BAR = 40;

/** Sizes from 0; those above LARGEST_BAR together. */
function setSizeFigure(histograms) {
  const last = Math.max(...histograms.map((histogram) => histogram.counts.reduce((most, count, size) => (count ? size : most), 0)));
  const folded = last > LARGEST_BAR;
  const labels = [...Array(Math.min(last, LARGEST_BAR) + 1).keys()].map(String);
  if (folded) labels.push(`over ${LARGEST_BAR}`);
  const counts = (histogram) => labels.map((_, i) => (
    i > LARGEST_BAR ? histogram.counts.slice(LARGEST_BAR + 1).reduce((sum, count) => sum + count, 0) : histogram.counts[i] ?? 0));
  const make = () => ({
    type: "bar",
    data: {
      labels,
      datasets: histograms.map((histogram, i) => ({ label: histogram.metric, data: counts(histogram), backgroundColor: seriesColour(i) })),
    },
    scales: { x: axis("classes in the set"), y: axis("images", { beginAtZero: true, ticks: { precision: 0 } }) },
    plugins: histograms.length > 1 ? { legend: legendBelow() } : {},
  });
  const all = histograms.map(counts);
  const numbers = table([{ name: "classes in the set", number: true }, ...histograms.map((one) => ({ name: one.metric + ": images", number: true }))],
    labels.map((label, i) => [label, ...all.map((one) => one[i].toLocaleString("en"))]));
  const names = histograms.map((histogram) => histogram.metric).join(", ");
  return chartFigure("Sizes of the sets: " + names, `histogram of set sizes, ${names}; the table below has the numbers`, make, numbers);
}

function classFigure(answers) {
  const classes = answers.classes.map(([name, train, images, best, sets]) => ({ name, train, images, best, sets }));
  const tested = classes.filter((one) => one.images > 0);
  const kinds = [["top1", "best", "circle"], ...(answers.sets === "top1" ? [] : [[answers.sets, "sets", "triangle"]])];
  // A class without training images has no place on a logarithmic axis: it stands at a half.
  const place = (one) => Math.max(one.train, 0.5);
  const make = () => ({
    type: "scatter",
    data: {
      datasets: kinds.map(([label, key, pointStyle], i) => ({
        label, pointStyle, data: tested.map((one) => ({ x: place(one), y: (100 * one[key]) / one.images, one })),
        backgroundColor: seriesColour(i) + "a0", borderColor: seriesColour(i), pointRadius: 4,
      })),
    },
    scales: { x: logAxis("training images of the class", tested.map(place)), y: axis("accuracy of the class, %", { suggestedMax: 100 }) },
    plugins: {
      legend: legendBelow(),
      tooltip: { callbacks: { label: ({ dataset, raw }) => `${raw.one.name}: ${dataset.label} ${raw.y.toFixed(2)} %, ${raw.one.train} training images` } },
    },
  });
  const percent = (count, one) => (one.images ? shown(count / one.images, true) : null);
  const numbers = table(
    ["class", { name: "training images", number: true }, { name: "images", number: true }, ...kinds.map(([label]) => ({ name: label + ", %", number: true }))],
    classes.map((one) => [one.name, String(one.train), String(one.images), ...kinds.map(([, key]) => percent(one[key], one))]));
  return chartFigure("Accuracy by class, against its training images",
    `accuracy of each of ${tested.length} classes against its number of training images; the table below has the numbers`, make, numbers);
}

function confusionTable(title, confusions, images) {
  if (confusions.pairs.length === 0) return element("div", {}, element("h3", {}, title), element("p", {}, "None: all top-1 predictions are correct."));
  const share = shown(confusions.errors / images, true);
  const rows = confusions.pairs.map(([truth, taken, count, of]) => [truth, taken, `${count} of ${of}`, shown(count / of, true)]);
  return element("div", {},
    element("h3", {}, title),
    element("p", { class: "quiet" }, `${confusions.errors.toLocaleString("en")} of ${images.toLocaleString("en")} images (${share} %) are misclassified by the top-1 prediction.`),
    table(["true", "predicted", { name: "images", number: true }, { name: "%", number: true }], rows));
}

function organTable({ organs, sets, images }) {
  const columns = ["top1", ...(sets === "top1" ? [] : [sets])].map((name) => name + ", %");
  const sizes = sets.startsWith("avg") ? ["mean set size"] : [];
  const rows = organs.rows.map(([organ, count, best, hits, size]) => [organ, count.toLocaleString("en"), shown(best / count, true),
    ...(sets === "top1" ? [] : [shown(hits / count, true)]), ...sizes.map(() => size.toFixed(2))]);
  const without = organs.without ? `The metadata name no organ for ${organs.without.toLocaleString("en")} of ${images.toLocaleString("en")} images.` : null;
  return element("div", {}, element("h3", {}, "Accuracy by organ"), without ? element("p", { class: "quiet" }, without) : null,
    table(["organ", ...["images", ...columns, ...sizes].map((name) => ({ name, number: true }))], rows));
}

function exampleCard(example) {
  const more = example.size - example.set.length;
  const percent = (p) => (100 * p).toFixed(1) + " %";
  return element("li", {},
    element("div", { class: "example" },
      element("img", { src: example.picture, alt: "an image of the class " + example.truth }),
      element("div", {},
        element("strong", {}, example.truth),
        element("span", { class: example.hit ? "right" : "wrong" }, example.hit ? "✓ in the set" : "✗ not in the set"),
        element("div", { class: "quiet" }, `${example.size} ${example.size === 1 ? "class" : "classes"}`,
          example.hit ? null : `; its probability ${percent(example.truth_probability)}`))),
    element("ul", { class: "set" },
      example.set.map(([name, p]) => element("li", { class: name === example.truth ? "true" : "" }, element("span", {}, name), element("span", {}, percent(p)))),
      more > 0 ? element("li", { class: "quiet" }, element("span", {}, `and ${more} more`)) : null));
}

const KINDS = [
  ["correct", "Correct", "The set contains the true class. Images at even intervals of the split."],
  ["missed", "Missed", "The set misses the true class. Images at even intervals of the split."],
  ["large", "Large sets", "The images with the largest sets."],
];

function examples(answers) {
  if (answers.examples_missing) return [element("p", { class: "note" }, answers.examples_missing)];
  return KINDS.filter(([kind]) => answers.examples[kind].length).flatMap(([kind, title, what]) => [
    element("h3", {}, title), element("p", { class: "quiet" }, what), element("ul", { class: "examples" }, answers.examples[kind].map(exampleCard))]);
}

function shownRun(one, runs) {
  const run = runs[one.run];
  const parts = [element("p", { class: "quiet" }, [one.why, `Checkpoint ${one.checkpoint}, split ${one.answers?.split ?? one.split}.`].filter(Boolean).join(" "))];
  const figures = element("div", { class: "charts" });
  if (one.set_sizes.length) figures.append(setSizeFigure(one.set_sizes));
  if (one.answers) figures.append(classFigure(one.answers));
  parts.push(figures);
  if (!one.set_sizes.length) parts.push(element("p", { class: "quiet" }, "No average-K sets were evaluated (eval.average_k), so all sets have the same size."));
  if (one.missing) {
    parts.push(element("p", { class: "note" }, "Accuracy by class, confusions and examples need the model's scores, and are missing:\n" + one.missing));
    return parts;
  }
  const answers = one.answers;
  const confusions = element("div", { class: "charts" }, confusionTable("Most confused classes", answers.confusions, answers.images));
  if (answers.superclasses) confusions.append(confusionTable("Most confused superclasses", answers.superclasses, answers.images));
  if (answers.organs) confusions.append(organTable(answers));
  const rule = answers.threshold === null ? "the classes with the largest scores" :
    `every class whose value reaches the threshold ${shown(answers.threshold, false)}`;
  parts.push(confusions, element("p", {}, `The sets below are those of ${answers.sets}: ${rule}. Numbers are probabilities (${answers.probability} of the scores).`), ...examples(answers));
  return parts;
}
