// Calls of the gateway: the JSON twins, with the token where one was given.

const KEY = "gradewire-token";
let token = sessionStorage.getItem(KEY) ?? "";

export const SCORE = "/gradewire.v1.Scoring/Score";
export const LIST = "/gradewire.v1.Models/List";
export const SNAPSHOT = "/gradewire.v1.Monitoring/Snapshot";

/** Why a request has no answer: a problem of RFC 9457, or what the browser says of the connection. */
export class ProblemError extends Error {
  constructor(problem) {
    super(problem.detail);
    this.status = problem.status;
    this.code = problem.code;
    this.field = problem.field ?? "";
    this.requestId = problem.requestId ?? "";
    this.retryAfterS = problem.retryAfterS ?? null;
  }

  /** For people: what happened, and what a token has to do with it. */
  get said() {
    const id = this.requestId ? ` (request ${this.requestId})` : "";
    if (this.status === 401) return `The server does not know this token: ${this.message}. Sign in with another one${id}.`;
    if (this.status === 403) return `The token is known, but not good for this: ${this.message}${id}.`;
    return `${this.message}${id}`;
  }
}

/** Whether a token is held. */
export function signedIn() {
  return token !== "";
}

/** Holds a token in memory, and for this tab where `keep` says so; an empty one signs out. */
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

/** Posts JSON to a path; gives the JSON that comes back. Throws ProblemError, and AbortError of the signal. */
export async function call(path, body, { signal, timeoutMs } = {}) {
  const more = timeoutMs ? { "connect-timeout-ms": String(timeoutMs) } : {};
  const reply = await answered(path, {
    method: "POST", headers: { ...headers("application/json"), ...more }, body: JSON.stringify(body), signal,
  });
  return reply.json();
}

/** Gets JSON. */
export async function get(path) {
  return (await answered(path, { headers: headers() })).json();
}

/** Posts lines of JSON; gives the text that comes back. */
export async function postLines(path, blob, { signal } = {}) {
  const reply = await answered(path, { method: "POST", headers: headers("application/x-ndjson"), body: blob, signal });
  return reply.text();
}
