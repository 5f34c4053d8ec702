// The paper's Figure 1 to play with: query, passages and centroids in the plane of their principal components.

import { byId, el, fixed, spelled, svg } from "./dom.js";

const WIDTH = 388, HEIGHT = 300, MARGIN = 28;
let drawing = null;
let box = { x: 0, y: 0, width: WIDTH, height: HEIGHT };

function scales(points) {
  const xs = points.map((point) => point.x), ys = points.map((point) => point.y);
  const [left, right, bottom, top] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  const along = (value, low, high, from, to) => from + (high > low ? (value - low) / (high - low) : 0.5) * (to - from);
  return {
    x: (value) => along(value, left, right, MARGIN, WIDTH - MARGIN),
    y: (value) => along(value, bottom, top, HEIGHT - MARGIN, MARGIN),
  };
}

function pointsOf(answer) {
  const rarest = Math.max(...answer.centroids.map((centroid) => centroid.sigma), 1e-9);
  return [
    ...answer.feedback.map((point) => ({ ...point, kind: "passage", radius: 2, tip: `${point.token} · ${answer.documents[point.document] ?? ""}` })),
    ...answer.compare.map((point) => ({ ...point, kind: `compare${point.shared ? " shared" : ""}`, radius: 4, tip: `${point.token} · the other text`, label: point.shared ? point.token : "", rank: 1 })),
    ...answer.centroids.map((point) => ({
      ...point, kind: `centroid${point.chosen ? " chosen" : ""}`, radius: 3 + 8 * Math.sqrt(Math.max(0, point.sigma) / rarest),
      tip: `${point.label} · σ ${fixed(point.sigma)} · P ${fixed(point.probability)}${point.chosen ? ` · weight ${fixed(point.weight, 3)}` : " · not added"}`,
      label: point.chosen ? spelled(point.label) : "", rank: 2 + point.sigma,
    })),
    ...answer.tokens.filter((point) => !point.special).map((point) => ({ ...point, kind: "query", radius: 4, tip: `${point.token} · query`, label: point.token, rank: 1e9 })),
  ];
}

/**
 * Labels that cover no other label; the most important first, each at that side or corner of its point where it covers
 * the fewest circles. One that would cover several is left to the tip and to the table.
 */
function labelled(points, scale, zoom) {
  const taken = [], labels = [];
  const circles = points.filter((point) => point.kind !== "passage").map((point) => ({ point, x: scale.x(point.x), y: scale.y(point.y), r: point.radius * zoom }));
  const covered = (own, left, top, width, height) => circles.filter(({ point, x, y, r }) => point !== own
    && Math.hypot(x - Math.max(left, Math.min(x, left + width)), y - Math.max(top, Math.min(y, top + height))) < r).length;
  for (const point of points.filter((one) => one.label).sort((a, b) => b.rank - a.rank)) {
    const width = point.label.length * 6.7 * zoom + 2, height = 12 * zoom;
    const x = scale.x(point.x), y = scale.y(point.y), gap = point.radius * zoom + 2 * zoom;
    const corner = 0.7 * gap;
    const places = [[x + gap, y - height / 2], [x - gap - width, y - height / 2], [x - width / 2, y - gap - height], [x - width / 2, y + gap],
      [x + corner, y - corner - height], [x + corner, y + corner], [x - corner - width, y - corner - height], [x - corner - width, y + corner]];
    const free = places.filter(([left, top]) => left > 0 && left + width < WIDTH
      && taken.every((other) => left > other.right || left + width < other.left || top > other.bottom || top + height < other.top));
    if (!free.length) continue;
    const costs = free.map(([left, top]) => covered(point, left, top, width, height));
    const least = Math.min(...costs);
    if (least > 1) continue;
    const [left, top] = free[costs.indexOf(least)];
    taken.push({ left, right: left + width, top, bottom: top + height });
    labels.push(svg("text", { x: left, y: top + height * 0.8 }, point.label));
  }
  return labels;
}

function draw() {
  const container = byId("plane");
  if (!drawing) return container.replaceChildren();
  const points = pointsOf(drawing), scale = scales(points), zoom = box.width / WIDTH;
  const tip = el("div", { class: "tip", hidden: true });
  const shapes = points.map((point) => {
    const circle = svg("circle", { class: point.kind.split(" ").map((kind, place) => (place ? kind : `p-${kind}`)).join(" "), cx: scale.x(point.x), cy: scale.y(point.y), r: point.radius * zoom });
    circle.style.strokeWidth = `${1.5 * zoom}px`;
    circle.addEventListener("mouseenter", () => {
      const at = circle.getBoundingClientRect(), frame = container.getBoundingClientRect();
      tip.textContent = point.tip;
      tip.hidden = false;
      tip.style.left = `${Math.min(at.left - frame.left + 8, frame.width - 180)}px`;
      tip.style.top = `${at.bottom - frame.top + 4}px`;
    });
    circle.addEventListener("mouseleave", () => { tip.hidden = true; });
    return circle;
  });
  const labels = labelled(points, scale, zoom);
  for (const label of labels) { label.style.fontSize = `${11 * zoom}px`; label.style.strokeWidth = `${3 * zoom}px`; }
  const title = `Query, passages and ${drawing.centroids.length} centroids; the axes show ${drawing.explained.map((share) => `${Math.round(100 * share)} %`).join(" and ")} of the variance`;
  const picture = svg("svg", { viewBox: `${box.x} ${box.y} ${box.width} ${box.height}`, role: "img", "aria-label": title }, ...shapes, ...labels);
  picture.addEventListener("wheel", (event) => { event.preventDefault(); zoomAt(event, event.deltaY > 0 ? 1.2 : 1 / 1.2); }, { passive: false });
  let from = null;
  picture.addEventListener("pointerdown", (event) => { from = { x: event.clientX, y: event.clientY, box }; picture.setPointerCapture(event.pointerId); });
  picture.addEventListener("pointermove", (event) => {
    if (!from) return;
    const size = picture.getBoundingClientRect();
    box = { ...box, x: from.box.x - (event.clientX - from.x) * box.width / size.width, y: from.box.y - (event.clientY - from.y) * box.height / size.height };
    picture.setAttribute("viewBox", `${box.x} ${box.y} ${box.width} ${box.height}`);
  });
  picture.addEventListener("pointerup", () => { from = null; });
  return container.replaceChildren(picture, tip);
}

function zoomAt(event, factor) {
  const frame = event.currentTarget.getBoundingClientRect();
  const [across, down] = [(event.clientX - frame.left) / frame.width, (event.clientY - frame.top) / frame.height];
  const width = Math.min(WIDTH, Math.max(WIDTH / 20, box.width * factor)), height = width * HEIGHT / WIDTH;
  box = { x: box.x + (box.width - width) * across, y: box.y + (box.height - height) * down, width, height };
  draw();
}

function table(answer) {
  const rows = [
    ...answer.tokens.filter((point) => !point.special).map((point) => ["query", point.token, point, ""]),
    ...answer.centroids.map((point) => [point.chosen ? "centroid, added" : "centroid", point.label, point, fixed(point.sigma)]),
    ...answer.compare.map((point) => ["other text", point.token, point, ""]),
  ];
  return el("table", {},
    el("thead", {}, el("tr", {}, ...["what", "token", "x", "y", "σ"].map((head) => el("th", { scope: "col" }, head)))),
    el("tbody", {}, ...rows.map(([what, token, point, sigma]) => el("tr", {}, ...[what, token, fixed(point.x), fixed(point.y), sigma].map((cell, place) => el("td", { class: place > 1 ? "number" : null }, cell))))));
}

export function resetZoom() {
  box = { x: 0, y: 0, width: WIDTH, height: HEIGHT };
  draw();
}

/** Show an answer of `plane`, or nothing. */
export function showPlane(answer) {
  drawing = answer;
  draw();
  byId("plane-table").replaceChildren(...(answer ? [table(answer)] : []));
}
