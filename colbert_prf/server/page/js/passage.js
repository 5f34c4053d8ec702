// A passage whose tokens are shaded by what they contribute to the score.

import { el } from "./dom.js";

/** What each place of the text gave: the matches of the query's words and of added vectors, by position. */
function places(matches) {
  const byPosition = new Map();
  for (const match of matches) {
    if (match.kind === "special" || match.start === null) continue;
    const place = byPosition.get(match.position)
      ?? { start: match.start, end: match.end, word: 0, added: 0, vectors: [], position: match.position };
    place[match.kind] += match.contribution;
    place.vectors.push(match.vector);
    byPosition.set(match.position, place);
  }
  return [...byPosition.values()].sort((a, b) => a.start - b.start);
}

/** The text of a hit as nodes, with a `mark` at every token that a query vector matched. */
export function passage(hit) {
  const letters = Array.from(hit.text ?? "");
  const marks = places(hit.explanation?.matches ?? []);
  const most = Math.max(...marks.map((mark) => mark.word + mark.added), 1e-9);
  const nodes = [];
  let at = 0;
  for (const mark of marks) {
    if (mark.start < at) continue;
    nodes.push(letters.slice(at, mark.start).join(""));
    nodes.push(el("mark", {
      class: mark.added > mark.word ? "added" : null,
      "data-vectors": mark.vectors.join(" "), "data-position": mark.position,
      "--shade": Math.max(0.12, (mark.word + mark.added) / most).toFixed(3),
    }, letters.slice(mark.start, mark.end).join("")));
    at = mark.end;
  }
  nodes.push(letters.slice(at).join(""));
  return el("p", { class: "passage folded", dir: "auto" }, ...nodes);
}
