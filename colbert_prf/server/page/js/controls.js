// What feedback does: the method and its sliders.

import { byId, el, segments } from "./dom.js";

const SLIDERS = [
  ["weight", "weight", 0, 1, 0.01, "How much the added vectors weigh, against the whole query"],
  ["feedback_docs", "documents", 1, 20, 1, "Passages it learns from"],
  ["clusters", "clusters", 2, 48, 1, "k-means clusters of their vectors (ColBERT-PRF)"],
  ["expansion_vectors", "vectors", 1, 40, 1, "Centroids it adds, those of the rarest tokens"],
];

/** Show the controls for a state; `defaults` are those of the chosen method. */
export function showControls({ state, methods, defaults, actions }) {
  const options = [["off", "off"], ...methods.filter((method) => ["prf", "centroid"].includes(method.method)).map((method) => [method.method, method.title])];
  segments(byId("method"), options, state.method, actions.method);
  const off = state.method === "off";
  const container = byId("sliders");
  const rows = SLIDERS.filter(([name]) => off || defaults.has(name)).map(([name, label, least, most, step, title]) => {
    const value = state[name] ?? defaults.get(name) ?? least;
    const output = el("output", { class: state[name] !== null ? "changed" : null }, String(value));
    const input = el("input", {
      type: "range", id: `slider-${name}`, min: least, max: Math.max(most, value), step, value, disabled: off,
      oninput: () => { output.textContent = input.value; output.className = "changed"; actions.slider(name, Number(input.value)); },
    });
    return el("div", { class: "slider", title }, el("label", { for: `slider-${name}` }, label), input, output);
  });
  const rerank = el("input", { type: "checkbox", id: "rerank", disabled: off, onchange: () => actions.rerank(rerank.checked) });
  rerank.checked = state.rerank;
  const focused = document.activeElement?.id;
  container.replaceChildren(...rows, el("div", { class: "row" },
    el("label", {}, rerank, "only re-rank the first pass"),
    el("button", { type: "button", class: "plain", onclick: actions.reset }, "Defaults")));
  if (focused && container.querySelector(`#${CSS.escape(focused)}`)) byId(focused).focus({ preventScroll: true });
}
