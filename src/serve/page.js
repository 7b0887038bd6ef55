// The page of `settrain serve`: photographs go in, sets of classes come out. All text goes in as text, never as HTML.
"use strict";

const FIRST_SHOWN = 20;
const [title, facts, picker, thumbnails, state, answers, server, where, chosen] =
  ["title", "facts", "files", "thumbnails", "status", "answer", "server", "where", "place"].map((id) => document.getElementById(id));
let shown = []; // the photographs that the answer is to
let limits = { bytes: Infinity, pixels: Infinity, images: Infinity };
let latest = new AbortController(); // of the newest request: a newer one cancels it
const ICON = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><path fill="#07b" d="M1 2h14v3H1M1 7h9v3H1M1 12h4v3H1"/></svg>';

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "class") made.className = value;
    else if (name === "style") Object.assign(made.style, value);
    else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value);
  }
  made.append(...children.flat(Infinity).filter((child) => child !== null));
  return made;
}

const whole = (number) => number.toLocaleString("en");
const mebibytes = (bytes) => `${Math.ceil((10 * bytes) / 2 ** 20) / 10} MiB`;

/** "no shoes" becomes "No shoes.". */
const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? "" : ".");
/** What rules promise and need has semicolons between. */
const sentences = (text) => text.split("; ").map(sentence);

function percent(probability) {
  const shown = (100 * probability).toFixed(1);
  if (shown === "0.0" && probability > 0) return "< 0.1\u00a0%";
  if (shown === "100.0" && probability < 1) return "> 99.9\u00a0%";
  return shown + "\u00a0%";
}

/** An error to show. `again`: the same request may succeed later. */
function problem(text, again = false) {
  return Object.assign(new Error(text), { again });
}

/** The JSON that the server answers with. */
async function ask(path, options) {
  let response, content;
  try {
    response = await fetch(path, options);
    content = await response.json();
  } catch (error) {
    if (options.signal.aborted) throw error;
    if (!(error instanceof SyntaxError)) throw problem("The server does not answer. It was stopped, or the network is gone.", true);
  }
  if (response.ok && content) return content;
  const text = sentence(content?.error ?? `the server answered ${response.status}, without a reason`);
  throw problem(text + (response.status === 503 ? " Try again in a moment." : ""), [408, 500, 503].includes(response.status));
}

/** Shows the photographs. Resolves to the number of pixels of each, 0 where the browser cannot show its format. */
function showPhotographs(files) {
  for (const image of thumbnails.querySelectorAll("img")) URL.revokeObjectURL(image.src);
  thumbnails.hidden = files.length === 0;
  thumbnails.classList.toggle("one", files.length === 1);
  const images = files.map((file) => element("img", { alt: "", draggable: "false", src: URL.createObjectURL(file) }));
  const named = (image, i) => element("li", {}, image, element("span", { title: files[i].name }, files[i].name));
  thumbnails.replaceChildren(...images.map(named));
  return Promise.all(images.map((image) => new Promise((resolve) => {
    image.onload = () => {
      image.classList.toggle("small", image.naturalHeight < image.clientHeight);
      resolve(image.naturalWidth * image.naturalHeight);
    };
    image.onerror = () => {
      URL.revokeObjectURL(image.src);
      image.replaceWith(element("div", { class: "unseen" }, "no preview"));
      resolve(0);
    };
  })));
}

/** Throws where the server would refuse the photographs, or they cannot be read. */
async function checkPhotographs(files, pixels) {
  if (files.length === 0) throw problem("That is not a file. Save the photograph first, then drop or choose the file.");
  if (files.length > limits.images) {
    throw problem(`These are ${whole(files.length)} photographs. The server takes at most ${whole(limits.images)} of one specimen.`);
  }
  for (const [i, file] of files.entries()) {
    await file.slice(0, 1).arrayBuffer().catch(() => {
      throw problem(`'${file.name}' cannot be read. It is a folder, or it was changed or deleted.`);
    });
    if (pixels[i] > limits.pixels) {
      throw problem(`'${file.name}' has ${whole(pixels[i])} pixels. The server takes at most ${whole(limits.pixels)}.`);
    }
  }
  const bytes = files.reduce((sum, file) => sum + file.size, 0);
  if (bytes > limits.bytes) {
    const what = files.length === 1 ? `'${files[0].name}' has` : `These ${files.length} photographs have together`;
    throw problem(`${what} ${mebibytes(bytes)}. The server takes at most ${mebibytes(limits.bytes)}.`);
  }
}

function requestOf(files, signal) {
  if (files.length === 1) return { method: "POST", body: files[0], headers: { "Content-Type": "application/octet-stream" }, signal };
  const form = new FormData();
  for (const file of files) form.append("photograph", file);
  return { method: "POST", body: form, signal };
}

function showModel(model) {
  limits = model.limits;
  showPlaces(model);
  const { height, width, channels } = model.input;
  title.textContent = `${model.data_set}, ${model.model}`;
  document.title = `${title.textContent}: settrain`;
  facts.textContent = [
    `The answer is a set, chosen from ${whole(model.names.length)} ${classesOf(model)}.`,
    `The model sees ${width} × ${height} pixels${channels === 1 ? ", grey" : ""}.`,
    model.calibrated_on ? `Calibrated on ${model.calibrated_on}.` : "",
    model.temperature === 1 ? "" : `The scores are divided by the temperature ${Number(model.temperature.toPrecision(4))}.`,
    model.probabilities === "sigmoid" ? "Each class has a probability of its own: they need not sum to 100 %." : "",
  ].filter(Boolean).join(" ");
  server.textContent = `${model.file}, served by settrain ${model.version}. This page sends photographs to its own server only.`;
}

/** The place that is chosen, as the server has it; undefined where none is. */
const placeIn = (model) => model.places.find((place) => chosen.value === `${place.kind}=${place.name}`);

/** Offers the server's places, and keeps the choice. */
function showPlaces(model) {
  const options = model.places.map((place) => {
    const text = place.kind === "only" ? `${place.name}: only the classes that occur there` : place.name;
    return element("option", { value: `${place.kind}=${place.name}` }, text);
  });
  const value = chosen.value;
  chosen.replaceChildren(element("option", { value: "" }, "anywhere"), ...options);
  chosen.value = value;
  if (chosen.selectedIndex < 0) chosen.value = "";
  where.hidden = options.length === 0;
  where.querySelector("span").textContent = (placeIn(model)?.notes ?? []).map(sentence).join(" ");
}

const rulesOf = (model) => (placeIn(model) ?? model).rules;

const classesOf = (model) => (model.by === "superclass" ? "superclasses" : "classes");
const sizeOf = (model, set) => `${whole(set.size)} of ${whole(model.names.length)} ${classesOf(model)}`;

function promise(rule) {
  const [first, ...needs] = sentences(rule.guarantee ?? rule.no_guarantee);
  return element("div", { class: "promise" },
    element("p", {}, element("strong", { class: rule.guarantee ? "given" : "" }, rule.guarantee ? "Guarantee. " : "No guarantee. "), first),
    needs.length ? element("p", { class: "quiet" }, needs.join(" ")) : null,
    rule.notes.map((note) => element("p", { class: "note" }, sentences(note).join(" "))));
}

/** Name and probability of each class. */
const classEntries = (set) => set.names.map((name, i) => [name, set.probabilities[i]]);

/** Name and probability of each node of a taxonomy, with the ranks of genera and families. */
function nodeEntries(set) {
  const rank = (i) => (set.names.includes(set.nodes[i]) ? "" : ` (${set.node_ranks[i]})`);
  return set.nodes.map((name, i) => [name + rank(i), set.node_probabilities[i]]);
}

function entryList(entries) {
  const rows = (from, to) => entries.slice(from, to).map(([name, probability]) => {
    return element("li", {}, element("span", {}, name), element("span", {}, percent(probability)),
      element("div", { class: "bar", "aria-hidden": "true" }, element("div", { style: { width: `${100 * probability}%` } })));
  });
  const list = element("ol", { class: "set", role: "list" }, rows(0, FIRST_SHOWN));
  if (entries.length <= FIRST_SHOWN) return [list];
  const showAll = (event) => {
    const rest = rows(FIRST_SHOWN, entries.length);
    list.append(...rest);
    event.target.remove();
    rest[0].tabIndex = -1; // the keyboard goes on where the list does
    rest[0].focus({ preventScroll: true });
  };
  return [list, element("button", { type: "button", onclick: showAll }, `Show all ${whole(entries.length)}`)];
}

/** A rule's name and its promise, and the set it makes of an image where there is one. */
function card(model, rule, set) {
  const parts = [element("header", {}, element("h2", {}, rule.name), set ? element("span", { class: "quiet" }, sizeOf(model, set)) : null)];
  if (set?.size === 0) parts.push(element("p", { class: "empty" }, "The set is empty: no class is likely enough by this rule."));
  else if (set?.nodes) {
    const shown = `The ${whole(set.size)} ${classesOf(model)} of the set`;
    const classes = element("details", {}, element("summary", {}, shown), ...entryList(classEntries(set)));
    parts.push(...entryList(nodeEntries(set)), ...(set.nodes.length < set.size ? [classes] : []));
  } else if (set) parts.push(...entryList(classEntries(set)));
  if (set?.unknown) parts.push(element("p", { class: "note" }, "It looks like no known class: nearly all calibration photographs were less strange."));
  return element("article", { class: "card" }, parts, promise(rule));
}

/** What is read out: the page itself has all of it in its cards. */
function spoken(model, sets) {
  const more = (set) => (set.size > 5 ? ` and ${whole(set.size - 5)} more` : "");
  return Object.entries(sets).map(([name, set]) => ` ${name}: ${sizeOf(model, set)}: ${set.names.slice(0, 5).join(", ")}${more(set)}.`);
}

function showAnswer(model, answer) {
  const sentence = answer.images === 1 ? "Answer to this photograph" : `One answer to ${whole(answer.images)} photographs of one specimen`;
  showState(sentence, element("span", { class: "spoken" }, spoken(model, answer.sets)));
  const single = answer.images > 1 && rulesOf(model).some((rule) => rule.guarantee !== null);
  answers.replaceChildren(
    ...(single ? [element("p", { class: "note" }, "A guarantee is for a single photograph, not for a group of them.")] : []),
    ...rulesOf(model).filter((rule) => answer.sets[rule.name]).map((rule) => card(model, rule, answer.sets[rule.name])));
}

function showState(...parts) {
  state.classList.remove("busy");
  state.replaceChildren(...parts);
}

function showProblem(error, again) {
  showState();
  answers.replaceChildren(element("div", { class: "note problem", role: "alert" }, element("p", {}, error.message),
    error.again ? element("button", { type: "button", onclick: again }, "Try again") : null));
}

async function predict(files) {
  shown = files;
  latest.abort();
  latest = new AbortController();
  const { signal } = latest;
  showState("Waiting for the answer …");
  state.classList.add("busy");
  answers.replaceChildren();
  try {
    await checkPhotographs(files, await showPhotographs(files));
    // The model is asked for each time: another one may be served by now, and a set goes with the promise of its own rule.
    const [model, answer] = await Promise.all([ask("model", { signal }), ask(chosen.value ? `predict?${chosen.value}` : "predict", requestOf(files, signal))]);
    showModel(model);
    showAnswer(model, answer);
  } catch (error) {
    if (!signal.aborted) showProblem(error, () => predict(files));
  }
}

async function begin() {
  const { signal } = latest;
  try {
    const model = await ask("model", { signal });
    showModel(model);
    if (!signal.aborted) answers.replaceChildren(...rulesOf(model).map((rule) => card(model, rule, null)));
  } catch (error) {
    if (!signal.aborted) showProblem(error, begin);
  }
}

// An icon of the page's own: browsers ask servers for /favicon.ico where a page has none.
document.head.append(element("link", { rel: "icon", href: URL.createObjectURL(new Blob([ICON], { type: "image/svg+xml" })) }));
picker.addEventListener("change", () => {
  const files = [...picker.files];
  picker.value = ""; // so that choosing the same file again is a change
  if (files.length) predict(files);
});
chosen.addEventListener("change", () => (shown.length ? predict(shown) : begin()));
addEventListener("paste", (event) => {
  if (event.clipboardData.files.length) predict([...event.clipboardData.files]);
});
addEventListener("dragover", (event) => {
  event.preventDefault();
  document.body.classList.add("dragging");
});
addEventListener("dragleave", (event) => document.body.classList.toggle("dragging", event.relatedTarget !== null));
addEventListener("drop", (event) => {
  event.preventDefault();
  document.body.classList.remove("dragging");
  predict([...event.dataTransfer.files]);
});
begin();
