/** The client for browsers and other places without HTTP/2: over the JSON twins of the HTTP API. */
import type { Services } from "./services.js";
import { servicesOver } from "./services.js";
import { jsonTwinTransport } from "./transport/json-twins.js";
import { type CallPolicy, withPolicy } from "./transport/policy.js";

export * from "./api.js";

/** How to reach an HTTP API. */
export interface HttpOptions extends CallPolicy {
  /** In place of the global `fetch`. */
  readonly fetch?: typeof fetch;
}

/**
 * Clients over the HTTP API (`gradewire serve --http-api-port 8080`).
 *
 * Calls that take a stream of requests are `Unimplemented` here.
 *
 * @param baseUrl `https://host:8080`; in a page an empty string means the page's own server.
 */
export function connectOverHttp(baseUrl: string, options: HttpOptions = {}): Services {
  const fetching = options.fetch ?? globalThis.fetch.bind(globalThis);
  return servicesOver(withPolicy(jsonTwinTransport(baseUrl, fetching), options));
}
