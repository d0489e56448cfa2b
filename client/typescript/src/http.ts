/** The client for browsers and other platforms without HTTP/2. It uses the HTTP API's JSON twins of gRPC methods. */
import type { Services } from "./services.js";
import { servicesOver } from "./services.js";
import { jsonTwinTransport } from "./transport/json-twins.js";
import { type CallPolicy, withPolicy } from "./transport/policy.js";

export * from "./api.js";

/** Options for a connection to an HTTP API. */
export interface HttpOptions extends CallPolicy {
  /** A replacement for the global `fetch`. */
  readonly fetch?: typeof fetch;
}

/**
 * Returns clients over the HTTP API (`gradewire serve --http-api-port 8080`).
 *
 * Calls with a stream of requests fail with the code `Unimplemented`.
 *
 * @param baseUrl `https://host:8080`. In a web page, an empty string means the server that delivered the page.
 */
export function connectOverHttp(baseUrl: string, options: HttpOptions = {}): Services {
  const fetching = options.fetch ?? globalThis.fetch.bind(globalThis);
  return servicesOver(withPolicy(jsonTwinTransport(baseUrl, fetching), options));
}
