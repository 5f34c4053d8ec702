// The page: reads the state from the address, asks the service, shows the answer.

import * as api from "./api.js";
import { showLearned, showTokens } from "./chips.js";
import { showControls } from "./controls.js";
import { byId, el, segments } from "./dom.js";
import { resetZoom, showPlane } from "./plane.js";
import { showResults } from "./results.js";
import { EMPTY, feedbackOf, read, write } from "./state.js";
import { showTimings } from "./timings.js";

const REST = 150; // milliseconds a slider rests before it searches
let state = read(location.search);
let info = null; // of the index
let answer = null; // of the last search
let first = null; // hits of the first pass with explanations, once looked at
let running = null; // the search under way
let resting = null;

const feedbackOn = () => state.method !== "off";

// Asking.

/** Change the state, write it to the address, and search again; `push` makes a new entry of the history. */
function change(part, { push = false, again = true } = {}) {
  state = { ...state, ...part };
  history[push ? "pushState" : "replaceState"](null, "", write(state));
  if (again) run();
  else show();
}

const request = (feedback) => ({ query: state.query, k: state.k, explain: true, ...(feedback && { feedback }) });

/** Search; an older answer never overwrites a newer one. */
async function run() {
  running?.abort();
  if (!info) return; // the list of indexes is still to come; `start` searches then
  if (!state.query.trim()) return welcome();
  const own = running = new AbortController();
  const slow = setTimeout(() => document.body.classList.add("busy"), 150);
  try {
    const found = await api.search(state.index, request(feedbackOf(state)), own.signal);
    if (own !== running) return;
    answer = found;
    first = null;
    notice(null);
    await show();
    await plane(own);
  } catch (error) {
    if (error.name !== "AbortError" && own === running) failed(error);
  } finally {
    clearTimeout(slow);
    if (own === running) document.body.classList.remove("busy");
  }
}

/** The hits of the first pass, explained; asked for only when they are looked at. */
async function before() {
  if (first === null) first = (await api.search(state.index, request())).results[0].hits;
  return first;
}

async function plane(own) {
  const feedback = { ...(feedbackOf(state) ?? {}) };
  if (feedback.method && feedback.method !== "prf") return showPlane(null);
  delete feedback.without;
  const body = { query: state.query, feedback, ...(state.compare && { compare: state.compare }) };
  const drawn = await api.plane(state.index, body, own.signal);
  if (own === running) showPlane(drawn);
  byId("compare-key").hidden = !state.compare;
}

// Showing.

async function show() {
  if (!answer) return;
  const result = answer.results[0];
  byId("welcome").hidden = true;
  byId("columns").hidden = byId("footer").hidden = false;
  const views = [["before", "before"], ["after", "after"], ["side", "side by side"]];
  segments(byId("view"), feedbackOn() ? views : [], state.view, (view) => change({ view }, { again: false }));
  byId("view").hidden = !feedbackOn();
  const needed = feedbackOn() && state.view !== "after" ? await before() : null;
  const labels = new Map((result.expansion?.vectors ?? []).map((vector) => [result.tokens.length + vector.number, vector.label]));
  showTokens(result.tokens);
  showLearned(result.expansion, result.tokens.length, actions);
  showResults({ state, after: result.hits, before: needed, labels, actions });
  showTimings(result.timings, answer.took, answer.generation);
  byId("summary").textContent = summary(result);
  controls();
  document.title = `${state.query} · colbert-prf`;
}

function summary(result) {
  if (!result.hits.length) return "Nothing was found.";
  if (!feedbackOn()) return `${result.hits.length} passages`;
  const moved = result.hits.filter((hit) => hit.move).length, fresh = result.hits.filter((hit) => hit.move === null).length;
  return `${result.hits.length} passages: ${moved} moved, ${fresh} new, learned from ${result.expansion?.feedback.join(", ") || "nothing"}`;
}

function controls() {
  const method = info.feedback.find((one) => one.method === (feedbackOn() ? state.method : "prf"));
  const defaults = new Map((method?.parameters ?? []).map((parameter) => [parameter.name, parameter.default]));
  showControls({ state, methods: info.feedback, defaults, actions });
}

function welcome() {
  answer = null;
  byId("welcome").hidden = false;
  byId("columns").hidden = byId("footer").hidden = true;
  byId("tokens").replaceChildren();
  byId("learned").replaceChildren();
  const example = (text) => el("li", {}, el("button", { type: "button", onclick: () => ask(text) }, text));
  byId("examples").replaceChildren(...(info?.examples ?? []).slice(0, 8).map(example));
  document.title = "colbert-prf";
}

function notice(title, hint = "") {
  byId("notice").hidden = !title;
  if (title) byId("notice").replaceChildren(el("b", {}, title), hint);
}

/** Say what went wrong; a server that is busy or away is asked again. */
function failed(error) {
  if (error.status === 401) return byId("key-dialog").showModal();
  const seconds = error.retryAfter ?? (error.status === 503 || error.status === 0 ? 2 : null);
  if (seconds === null) return notice(error.message, error.hint ?? "");
  notice(error.code === "not_ready" ? "The index is being opened." : error.message, `Trying again in ${seconds} s.`);
  return setTimeout(() => (info ? run() : start()), 1000 * seconds);
}

// What a person does.

const actions = {
  method: (method) => change({ method, view: "after", without: [], relevant: [], non_relevant: [] }),
  slider: (name, value) => {
    clearTimeout(resting);
    resting = setTimeout(() => change({ [name]: value, without: [], method: feedbackOn() ? state.method : "prf" }), REST);
  },
  rerank: (rerank) => change({ rerank }),
  reset: () => change({ weight: null, feedback_docs: null, clusters: null, expansion_vectors: null, rerank: false, without: [] }),
  toggleVector: (number) => change({ without: state.without.includes(number) ? state.without.filter((one) => one !== number) : [...state.without, number] }),
  mark: (id, name) => {
    const other = name === "relevant" ? "non_relevant" : "relevant";
    const marked = state[name].includes(id) ? state[name].filter((one) => one !== id) : [...state[name], id];
    const method = feedbackOn() ? state.method : "prf";
    change({ [name]: marked, [other]: state[other].filter((one) => one !== id), without: [], method });
  },
  showSources: (sources) => {
    document.querySelectorAll("mark.source").forEach((mark) => mark.classList.remove("source"));
    for (const source of sources) {
      const hit = document.querySelector(`.hit[data-id="${CSS.escape(source.doc_id)}"]`);
      hit?.querySelector(`mark[data-position="${source.position}"]`)?.classList.add("source");
    }
  },
};

function ask(query) {
  byId("query").value = query;
  change({ query, without: [], relevant: [], non_relevant: [] }, { push: true });
}

/** Light what belongs together: a query vector and its matches, whichever is pointed at. */
function light(event) {
  document.querySelectorAll(".lit").forEach((one) => one.classList.remove("lit"));
  const target = event.type === "mouseout" ? null : event.target.closest?.("[data-vector], [data-vectors]");
  if (!target) return;
  const vectors = (target.dataset.vector ?? target.dataset.vectors).split(" ");
  for (const mark of document.querySelectorAll("mark[data-vectors]")) {
    if (vectors.some((vector) => mark.dataset.vectors.split(" ").includes(vector))) mark.classList.add("lit");
  }
  for (const chip of document.querySelectorAll("[data-vector]")) if (vectors.includes(chip.dataset.vector)) chip.classList.add("lit");
}

function walk(step) {
  const hits = [...document.querySelectorAll(".hit")];
  const at = hits.indexOf(document.activeElement?.closest(".hit"));
  hits[Math.min(hits.length - 1, Math.max(0, at + step))]?.focus();
}

function key(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("dialog")) return;
  const typing = event.target.matches("input:not([type=range]):not([type=checkbox]), select, textarea");
  if (event.key === "Escape" && typing) return event.target.blur();
  if (typing || (event.target.matches("[role=radio], input[type=range]") && event.key.startsWith("Arrow"))) return;
  const views = ["before", "after", "side"];
  const keys = {
    "/": () => byId("query").focus(), "?": () => byId("keys").showModal(), ArrowDown: () => walk(1), ArrowUp: () => walk(-1),
    w: () => document.activeElement?.closest(".hit")?.querySelector(".why-button")?.click(),
    f: () => answer && actions.method(feedbackOn() ? "off" : "prf"),
    b: () => answer && feedbackOn() && change({ view: views[(views.indexOf(state.view) + 1) % 3] }, { again: false }),
  };
  if (keys[event.key]) { event.preventDefault(); keys[event.key](); }
}

function theme() {
  const themes = ["auto", "light", "dark"];
  const set = (name) => {
    if (name === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = name;
    byId("theme").textContent = `Theme: ${name}`;
    localStorage.setItem("colbert-prf theme", name);
  };
  set(localStorage.getItem("colbert-prf theme") ?? "auto");
  byId("theme").addEventListener("click", () => set(themes[(themes.indexOf(localStorage.getItem("colbert-prf theme")) + 1) % 3]));
}

// Starting.

async function choose(name) {
  info = await api.info(name);
  state.index = name;
  byId("index").value = name;
  byId("index-size").textContent = `${info.num_documents.toLocaleString("en")} passages`;
}

async function start() {
  try {
    const { indexes } = await api.indexes();
    byId("index").replaceChildren(...indexes.map((index) => el("option", { value: index.name }, index.name)));
    await choose(indexes.some((index) => index.name === state.index) ? state.index : indexes[0].name);
    byId("query").value = state.query;
    byId("k").value = String(state.k);
    byId("compare").value = state.compare;
    notice(null);
    controls();
    await run();
  } catch (error) { failed(error); }
}

theme();
byId("search").addEventListener("submit", (event) => { event.preventDefault(); ask(byId("query").value); });
byId("k").addEventListener("change", () => change({ k: Number(byId("k").value) }));
byId("index").addEventListener("change", async () => {
  state = { ...structuredClone(EMPTY), query: state.query, method: state.method };
  await choose(byId("index").value);
  change({}, { push: true });
});
byId("compare-form").addEventListener("submit", (event) => { event.preventDefault(); change({ compare: byId("compare").value }); });
byId("plane-reset").addEventListener("click", resetZoom);
byId("help").addEventListener("click", () => byId("keys").showModal());
byId("key-dialog").addEventListener("close", () => { api.useKey(byId("key").value); start(); });
document.addEventListener("keydown", key);
for (const event of ["mouseover", "mouseout", "focusin", "focusout"]) document.addEventListener(event, light);
addEventListener("popstate", () => { state = read(location.search); start(); });
start();
