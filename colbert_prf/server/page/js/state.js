// The whole view is in the address, so that reloading and sharing give the same one.

const LISTS = ["relevant", "non_relevant"];
const NUMBERS = ["k", "weight", "feedback_docs", "clusters", "expansion_vectors"];

export const EMPTY = {
  index: null, query: "", k: 10, method: "prf", rerank: false, view: "after", compare: "",
  weight: null, feedback_docs: null, clusters: null, expansion_vectors: null,
  relevant: [], non_relevant: [], without: [],
};

/** Read the state from an address such as `?index=demo&q=fish&method=prf&weight=0.2`. */
export function read(search) {
  const parameters = new URLSearchParams(search);
  const state = structuredClone(EMPTY);
  state.index = parameters.get("index");
  state.query = parameters.get("q") ?? "";
  state.method = parameters.get("method") ?? EMPTY.method;
  state.view = parameters.get("view") ?? "after";
  state.compare = parameters.get("compare") ?? "";
  state.rerank = parameters.get("rerank") === "1";
  for (const name of NUMBERS) {
    const number = Number(parameters.get(name));
    if (parameters.has(name) && Number.isFinite(number) && number >= 0) state[name] = number;
  }
  for (const name of LISTS) state[name] = parameters.getAll(name);
  state.without = parameters.getAll("without").map(Number).filter((number) => Number.isInteger(number) && number >= 0);
  return state;
}

/** The address of a state; what has its default is left out. */
export function write(state) {
  const parameters = new URLSearchParams();
  if (state.index) parameters.set("index", state.index);
  if (state.query) parameters.set("q", state.query);
  for (const name of ["method", "view", "compare"]) if (state[name] !== EMPTY[name]) parameters.set(name, state[name]);
  if (state.rerank) parameters.set("rerank", "1");
  for (const name of NUMBERS) if (state[name] !== EMPTY[name]) parameters.set(name, String(state[name]));
  for (const name of [...LISTS, "without"]) for (const value of state[name]) parameters.append(name, String(value));
  const text = parameters.toString();
  return text ? `?${text}` : location.pathname;
}

/** The `feedback` of a request, or undefined where feedback is off. */
export function feedbackOf(state) {
  if (state.method === "off") return undefined;
  const feedback = { method: state.method };
  const names = state.method === "prf" ? ["weight", "feedback_docs", "clusters", "expansion_vectors"]
    : ["weight", "feedback_docs", "expansion_vectors"];
  for (const name of names) if (state[name] !== null) feedback[name] = state[name];
  if (state.rerank) feedback.rerank = true;
  for (const name of [...LISTS, "without"]) if (state[name].length) feedback[name] = state[name];
  return feedback;
}
