// The query as tokens, and what feedback added as chips that can be switched off.

import { byId, el, fixed, spelled } from "./dom.js";

/** Show the tokens of the query; special ones are summed up in one. */
export function showTokens(tokens) {
  const heaviest = Math.max(...tokens.map((token) => token.weight), 1e-9);
  const shown = tokens.map((token, vector) => ({ ...token, vector })).filter((token) => !token.special);
  const special = tokens.length - shown.length;
  byId("tokens").replaceChildren(...(tokens.length ? [
    el("span", { class: "name" }, "query"),
    ...shown.map((token) => el("span", {
      class: `token${token.token.startsWith("##") ? " piece" : ""}`, tabindex: "0", "data-vector": token.vector,
      "--weight": (token.weight / heaviest).toFixed(2), title: `weight ${fixed(token.weight)}`,
    }, token.token.replace(/^##/, ""))),
    special ? el("span", { class: "token special", title: "[CLS], [SEP], [MASK] and markers" }, `+${special} special`) : null,
  ].filter(Boolean) : []));
}

function popover(vector) {
  const from = new Map();
  for (const source of vector.sources) {
    const words = from.get(source.doc_id) ?? new Set();
    words.add(source.word ?? spelled(source.token));
    from.set(source.doc_id, words);
  }
  return el("div", { class: "popover", role: "tooltip" },
    el("div", {}, ...vector.likely.slice(0, 4).flatMap((likely) => [el("b", {}, spelled(likely.token)), ` ${fixed(likely.probability)}  `])),
    el("div", { class: "quiet" }, `σ ${fixed(vector.sigma)} · weight ${fixed(vector.weight, 3)}`),
    el("ul", {}, ...[...from].slice(0, 4).map(([id, words]) => el("li", {}, `${[...words].slice(0, 6).join(", ")} — ${id}`))));
}

/** Show the vectors that feedback added; `first` is the number of query vectors before them. */
export function showLearned(expansion, first, actions) {
  const container = byId("learned");
  if (!expansion) return container.replaceChildren();
  if (expansion.terms.length) {
    const terms = expansion.terms.filter((term) => term.added);
    return container.replaceChildren(el("span", { class: "name" }, "learned"),
      ...terms.map((term) => el("span", { class: "token", "--weight": Math.min(1, term.weight).toFixed(2) }, term.term)));
  }
  const rarest = Math.max(...expansion.vectors.map((vector) => vector.sigma), 1e-9);
  const chip = (vector) => {
    const button = el("button", {
      type: "button", class: "chip", "aria-pressed": String(vector.active), "data-vector": first + vector.number,
      "--sigma": (vector.sigma / rarest).toFixed(2),
      "aria-label": `${vector.label}, ${vector.active ? "added" : "switched off"}`,
      onclick: () => actions.toggleVector(vector.number),
    }, spelled(vector.label), el("span", { class: "sigma" }));
    const show = () => {
      const shown = popover(vector);
      document.body.append(shown);
      const box = button.getBoundingClientRect();
      shown.style.top = `${box.bottom + scrollY + 8}px`;
      shown.style.left = `${Math.max(8, Math.min(box.left, innerWidth - shown.offsetWidth - 16))}px`;
      button.dataset.sources = "";
      actions.showSources(vector.sources);
    };
    const hide = () => { document.querySelectorAll(".popover").forEach((shown) => shown.remove()); actions.showSources([]); };
    for (const [event, listener] of [["mouseenter", show], ["focus", show], ["mouseleave", hide], ["blur", hide]]) button.addEventListener(event, listener);
    return button;
  };
  document.querySelectorAll(".popover").forEach((shown) => shown.remove());
  const all = expansion.vectors.map(chip);
  return container.replaceChildren(el("span", { class: "name", title: "σ of the paper: how rare the token is" }, `learned from ${expansion.feedback.length === 1 ? "one passage" : `${expansion.feedback.length} passages`}, bar: σ`), ...all);
}
