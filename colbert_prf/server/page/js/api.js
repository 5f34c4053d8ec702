// Requests to the service this page was served by; no other host is ever asked.

const KEY = "colbert-prf key";

/** An answer of 400 or above: `{code, message, hint}` and after how many seconds to try again. */
export class ApiError extends Error {
  constructor(status, { code, message, hint }, retryAfter) {
    super(message);
    Object.assign(this, { status, code, hint, retryAfter });
  }
}

export const useKey = (key) => sessionStorage.setItem(KEY, key);

async function request(path, { body, signal } = {}) {
  const key = sessionStorage.getItem(KEY);
  const headers = { Accept: "application/json", ...(key && { Authorization: `Bearer ${key}` }) };
  if (body) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(path, { method: body ? "POST" : "GET", headers, body: body && JSON.stringify(body), signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, { code: "offline", message: "The server does not answer.", hint: "Is it still running?" }, 2);
  }
  if (response.ok) return response.json();
  const answer = await response.json().catch(() => ({ code: "unknown", message: response.statusText, hint: "" }));
  throw new ApiError(response.status, answer, Number(response.headers.get("Retry-After")) || null);
}

const named = (name) => `v1/indexes/${encodeURIComponent(name)}`;

export const indexes = () => request("v1/indexes");
export const info = (name) => request(named(name));
export const search = (name, body, signal) => request(`${named(name)}/search`, { body, signal });
export const plane = (name, body, signal) => request(`${named(name)}/plane`, { body, signal });
