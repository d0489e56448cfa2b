/** The client for Node, over gRPC. */
export * from "./api.js";
export * from "./client.js";
export type { StreamOptions } from "./streams/row-stream.js";
