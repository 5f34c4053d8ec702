// The hits, before and after feedback; lists that slide from one order to the other.

import { byId, el, fixed, thumb } from "./dom.js";
import { passage } from "./passage.js";
import { why } from "./why.js";

const WORDS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];
const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

/** How a hit moved against the first pass, with words for those who do not see the arrow. */
function move(hit, feedback) {
  if (!feedback) return null;
  if (hit.move === null || hit.move === undefined) return el("span", { class: "move new", title: "not among the first" }, "new");
  if (hit.move === 0) return el("span", { class: "move", "aria-label": "stayed" }, "=");
  const size = Math.abs(hit.move);
  const word = `${hit.move > 0 ? "up" : "down"} ${WORDS[size] ?? size}`;
  return el("span", { class: `move ${hit.move > 0 ? "up" : "down"}`, "aria-label": word, title: word }, `${hit.move > 0 ? "↑" : "↓"}${size}`);
}

function mark(hit, name, label, state, actions) {
  const pressed = state[name].includes(hit.doc_id);
  return el("button", {
    type: "button", class: "mark-button", "aria-pressed": String(pressed), "aria-label": label,
    title: name === "relevant" ? "Learn from this passage" : "Move away from this passage",
    onclick: () => actions.mark(hit.doc_id, name),
  }, thumb(name === "relevant"), el("span", { class: "wide" }, label));
}

function hitItem(hit, { state, labels, feedback, actions, compact }) {
  const text = passage(hit);
  const foot = el("div", { class: "foot" }, mark(hit, "relevant", "relevant", state, actions), mark(hit, "non_relevant", "not relevant", state, actions));
  const body = el("div", {},
    el("div", { class: "head" }, el("span", { class: "id", dir: "auto" }, hit.doc_id), el("span", { class: "score" }, fixed(hit.score))),
    text, foot);
  if (hit.explanation && !compact) {
    const table = el("div", {});
    const toggle = el("button", { type: "button", class: "plain why-button", "aria-expanded": "false", onclick: () => {
      const open = toggle.getAttribute("aria-expanded") !== "true";
      toggle.setAttribute("aria-expanded", String(open));
      table.replaceChildren(...(open ? [why(hit.explanation, labels)] : []));
    } }, "why this score");
    foot.append(toggle);
    body.append(table);
  }
  const more = el("button", { type: "button", class: "plain", hidden: true, onclick: () => {
    more.textContent = text.classList.toggle("folded") ? "more" : "less";
  } }, "more");
  foot.append(more);
  requestAnimationFrame(() => { more.hidden = text.scrollHeight <= text.clientHeight + 2; });
  return el("li", { class: "hit", tabindex: "-1", "data-id": hit.doc_id },
    el("div", { class: "rank" }, el("b", {}, String(hit.rank)), move(hit, feedback)), body);
}

/** Slide items from where they were to where they are now. */
function slide(container, before) {
  if (still() || !before.size) return;
  for (const item of container.querySelectorAll(".hit")) {
    const old = before.get(item.dataset.id);
    const now = item.getBoundingClientRect().top;
    if (old !== undefined && Math.abs(old - now) > 1 && Math.abs(old - now) < 2000) {
      item.animate([{ transform: `translateY(${old - now}px)` }, { transform: "none" }], { duration: 200, easing: "ease-out" });
    }
  }
}

/** Show the rankings the view asks for: `after` with feedback, `before` without, or both side by side. */
export function showResults({ state, after, before, labels, actions }) {
  const lists = byId("lists");
  const was = new Map([...lists.querySelectorAll(".hit")].map((item) => [item.dataset.id, item.getBoundingClientRect().top]));
  const feedback = state.method !== "off";
  const side = feedback && state.view === "side";
  const shared = { state, labels, actions, compact: side };
  const list = (title, hits, moves) => {
    const items = hits.map((hit) => hitItem(hit, { ...shared, feedback: moves }));
    const ordered = el("ol", { "aria-label": title }, ...items);
    return side ? el("section", {}, el("h3", {}, title), ordered) : ordered;
  };
  lists.className = side ? "side" : "";
  if (side) lists.replaceChildren(list("Before", before ?? [], false), list("After", after, true));
  else if (feedback && state.view === "before") lists.replaceChildren(list("Before feedback", before ?? [], false));
  else lists.replaceChildren(list(feedback ? "After feedback" : "Results", after, feedback));
  slide(lists, was);
}
