/** The client for browsers and other platforms without HTTP/2, over the JSON twins of the HTTP API. */
import type { Services } from "./services.js";
import { servicesOver } from "./services.js";
import { jsonTwinTransport } from "./transport/json-twins.js";
import { type CallPolicy, withPolicy } from "./transport/policy.js";

export * from "./api.js";

/** Options of a connection to an HTTP API. */
export interface HttpOptions extends CallPolicy {
  /** A replacement for the global `fetch`. */
  readonly fetch?: typeof fetch;
}

/**
 * Returns clients over the HTTP API (`gradewire serve --http-api-port 8080`).
 *
 * Calls with a stream of requests are `Unimplemented`.
 *
 * @param baseUrl `https://host:8080`; in a page, an empty string means the page's own server.
 */
export function connectOverHttp(baseUrl: string, options: HttpOptions = {}): Services {
  const fetching = options.fetch ?? globalThis.fetch.bind(globalThis);
  return servicesOver(withPolicy(jsonTwinTransport(baseUrl, fetching), options));
}
