// Where a score comes from: one row per query vector, special tokens in one row, the sum equal to the score.

import { el, fixed, spelled } from "./dom.js";

const row = (kind, cells) => el("tr", { class: kind }, ...cells.map((cell, place) =>
  el("td", { class: place > 1 ? "number" : null }, cell)));

/** The table of an explained hit; `labels` names the added vectors. */
export function why(explanation, labels) {
  const words = explanation.matches.filter((match) => match.kind === "word");
  const added = explanation.matches.filter((match) => match.kind === "added").sort((a, b) => b.contribution - a.contribution);
  const special = explanation.matches.filter((match) => match.kind === "special");
  const cells = (match, label = match.token) => [spelled(label), spelled(match.matched), fixed(match.similarity, 3), fixed(match.weight), fixed(match.contribution, 3)];
  const body = [
    ...words.map((match) => row("word", cells(match))),
    ...(special.length ? [row("special", [`${special.length} special tokens`, "", "", "", fixed(explanation.parts.special, 3)])] : []),
    ...added.map((match) => row("added", cells(match, labels.get(match.vector) ?? match.token))),
    ...explanation.terms.map((term) => row("word", [term.term, `${term.frequency} ×`, "", fixed(term.weight), fixed(term.contribution, 3)])),
  ];
  const heads = ["query token", "matched", "similarity", "weight", "contribution"];
  return el("div", { class: "why", role: "region", "aria-label": "Why this score", tabindex: "0" }, el("table", {},
    el("thead", {}, el("tr", {}, ...heads.map((head, place) => el("th", { scope: "col", class: place > 1 ? "number" : null }, head)))),
    el("tbody", {}, ...body),
    el("tfoot", {}, row("total", ["score", "", "", "", fixed(explanation.score, 3)]))));
}
