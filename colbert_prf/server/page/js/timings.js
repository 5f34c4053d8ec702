// Where the time went, as a bar.

import { byId, el, fixed } from "./dom.js";

const GROUPS = { wait: "wait", encode: "encode", "first pass": "first", learn: "learn", "second pass": "second", answer: "answer" };

export function showTimings(timings, took, generation) {
  const sums = new Map();
  for (const timing of timings) sums.set(timing.group, (sums.get(timing.group) ?? 0) + timing.milliseconds);
  const groups = [...sums].filter(([, time]) => time >= 0.005);
  const total = groups.reduce((sum, [, time]) => sum + time, 0) || 1;
  const bar = el("div", { class: "time-bar", "aria-hidden": "true" }, ...groups.map(([group, time]) => {
    const part = el("i", { class: GROUPS[group] ?? "", title: `${group} ${fixed(time, 1)} ms` });
    part.style.flexGrow = String(time / total);
    return part;
  }));
  byId("timings").replaceChildren(bar, el("div", { class: "times" }, ...groups.map(([group, time]) => el("span", {}, `${group} ${fixed(time, 1)} ms`))));
  byId("generation").textContent = `generation ${generation} · ${fixed(took, 1)} ms in the server`;
}
