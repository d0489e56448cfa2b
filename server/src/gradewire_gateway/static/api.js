// Calls to the gateway's JSON endpoints, with the user's token if there is one.

const KEY = "gradewire-token";
let token = sessionStorage.getItem(KEY) ?? "";

export const SCORE = "/gradewire.v1.Scoring/Score";
export const LIST = "/gradewire.v1.Models/List";
export const SNAPSHOT = "/gradewire.v1.Monitoring/Snapshot";

/** An error of a request: a problem (RFC 9457) from the gateway, or a failed connection. */
export class ProblemError extends Error {
  constructor(problem) {
    super(problem.detail);
    this.status = problem.status;
    this.code = problem.code;
    this.field = problem.field ?? "";
    this.requestId = problem.requestId ?? "";
    this.retryAfterS = problem.retryAfterS ?? null;
  }

  /** The message for users, with advice if the token is the cause. */
  get said() {
    const id = this.requestId ? ` (request ${this.requestId})` : "";
    if (this.status === 401) return `The server does not know this token: ${this.message}. Sign in with another token${id}.`;
    if (this.status === 403) return `The server knows this token, but the token does not permit this: ${this.message}${id}.`;
    return `${this.message}${id}`;
  }
}

/** Returns true if the page has a token. */
export function signedIn() {
  return token !== "";
}

/** Keeps a token in memory, and with `keep` until this tab is closed; an empty token signs out. */
export function useToken(given, keep) {
  token = given;
  if (given && keep) sessionStorage.setItem(KEY, given);
  else sessionStorage.removeItem(KEY);
}

function headers(type) {
  return { ...(type ? { "content-type": type } : {}), ...(token ? { authorization: `Bearer ${token}` } : {}) };
}

async function answered(address, options) {
  let reply;
  try {
    reply = await fetch(address, { ...options, cache: "no-store", redirect: "error", credentials: "omit" });
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new ProblemError({ status: 0, code: "unreachable", detail: "the gateway does not answer; is the server up?" });
  }
  if (reply.ok) return reply;
  const problem = await reply.json().catch(() => ({ status: reply.status, code: "unknown", detail: `HTTP ${reply.status}` }));
  throw new ProblemError(problem);
}

/** Posts JSON to a path and returns the JSON reply. Throws ProblemError, or AbortError if the signal aborts. */
export async function call(path, body, { signal, timeoutMs } = {}) {
  const more = timeoutMs ? { "connect-timeout-ms": String(timeoutMs) } : {};
  const reply = await answered(path, {
    method: "POST", headers: { ...headers("application/json"), ...more }, body: JSON.stringify(body), signal,
  });
  return reply.json();
}

/** Gets JSON from a path. */
export async function get(path) {
  return (await answered(path, { headers: headers() })).json();
}

/** Posts JSON lines and returns the text of the reply. */
export async function postLines(path, blob, { signal } = {}) {
  const reply = await answered(path, { method: "POST", headers: headers("application/x-ndjson"), body: blob, signal });
  return reply.text();
}
