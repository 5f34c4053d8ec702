// Elements from data. Everything that comes from documents or queries becomes text, never markup.

/** Make an element: attributes by name, listeners as `onclick`, children as strings or nodes. */
export function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name.startsWith("--")) element.style.setProperty(name, value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** Make an element of an SVG drawing. */
export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** A thumb, up or down, as a drawing: fonts of small machines have no emoji. */
export function thumb(up) {
  const path = svg("path", { d: "M5 7v6H2.5V7zM5 7l3-5c1.2 0 1.8.9 1.6 2L9.2 6H13a1 1 0 0 1 1 1.2l-1 5A1 1 0 0 1 12 13H5", fill: "none", stroke: "currentColor", "stroke-width": 1.3, "stroke-linejoin": "round" });
  if (!up) path.setAttribute("transform", "rotate(180 8 8)");
  return svg("svg", { viewBox: "0 0 16 16", width: 14, height: 14, "aria-hidden": "true" }, path);
}

export const byId = (id) => document.getElementById(id);

/** A row of buttons of which one is chosen; arrow keys move the choice. */
export function segments(container, options, chosen, choose) {
  const buttons = options.map(([value, label]) =>
    el("button", {
      type: "button", role: "radio", "data-value": value,
      "aria-checked": String(value === chosen), tabindex: value === chosen ? "0" : "-1",
      onclick: () => choose(value),
      onkeydown: (event) => {
        const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (!step) return;
        const next = options[(options.findIndex(([other]) => other === value) + step + options.length) % options.length][0];
        choose(next);
        container.querySelector(`[data-value="${next}"]`)?.focus();
      },
    }, label));
  container.replaceChildren(...buttons);
}

/** A token as people read it: a piece that continues a word begins with an ellipsis, not with `##`. */
export const spelled = (token) => token.replaceAll("##", "…");

export const fixed = (number, digits = 2) => number.toFixed(digits);
