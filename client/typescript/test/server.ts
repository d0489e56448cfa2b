/** One real server for all tests of this package, and what they send. */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { after } from "node:test";
import { fileURLToPath } from "node:url";

import { connect, type ConnectionOptions, type GradewireClient } from "../src/index.js";

// build/test/server.js
export const PACKAGE = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
export const ROOT = resolve(PACKAGE, "../..");
export const TOKEN = "right";

const TOKENS = `[own]\ntoken = "${TOKEN}"\n[narrow]\ntoken = "narrow"\nscopes = ["prepare"]\n`;
const JUDGE = "smollm2-135m-instruct";
const JUDGES = "from tests.support.judges.smollm2 import smollm2_repository; print(smollm2_repository())";
const START_MS = 60_000;

export interface RunningServer {
  /** Of gRPC. */
  readonly url: string;
  /** Of the HTTP API. */
  readonly api: string;
}

const directory = mkdtempSync(join(tmpdir(), "gradewire-"));
let child: ChildProcess | undefined;

async function start(): Promise<RunningServer> {
  writeFileSync(join(directory, "tokens.toml"), TOKENS);
  const judges = execFileSync(join(ROOT, ".venv/bin/python"), ["-c", JUDGES], { cwd: ROOT });
  const settings = {
    port: 0,
    http: false,
    http_api_port: 0,
    disk_directory: join(directory, "store"),
    auth_tokens_file: join(directory, "tokens.toml"),
    judge_repository: judges.toString().trim(),
    judge_model: JUDGE,
    // Other tests run beside these.
    workers: 1,
    // Writing an 8-bit graph into the new store takes seconds.
    window_choice: "fp32",
    drain_s: 0.2,
  };
  const given = Object.entries(settings).map(([name, value]) => [`GRADEWIRE_${name.toUpperCase()}`, String(value)]);
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith("GRADEWIRE_"));
  const log = join(directory, "server.log");
  const out = openSync(log, "w");
  const started = spawn(join(ROOT, ".venv/bin/gradewire"), ["serve"], {
    cwd: ROOT,
    env: Object.fromEntries([...inherited, ...given]),
    stdio: ["ignore", out, out],
  });
  child = started;
  const giveUpMs = performance.now() + START_MS;
  while (performance.now() < giveUpMs && started.exitCode === null) {
    const text = readFileSync(log, "utf8");
    const grpc = /"serving on port (\d+)"/.exec(text)?.[1];
    const api = /"HTTP API on port (\d+)"/.exec(text)?.[1];
    if (grpc !== undefined && api !== undefined) {
      return { url: `http://127.0.0.1:${grpc}`, api: `http://127.0.0.1:${api}` };
    }
    await new Promise((wake) => setTimeout(wake, 50));
  }
  throw new Error(`the server did not start: ${readFileSync(log, "utf8")}`);
}

const running = start();
const clients: GradewireClient[] = [];

/** The server, once it runs. */
export function server(): Promise<RunningServer> {
  return running;
}

/** A client with the right token, closed after the tests. */
export async function client(options: ConnectionOptions = {}): Promise<GradewireClient> {
  const made = connect((await running).url, { token: TOKEN, ...options });
  clients.push(made);
  return made;
}

after(async () => {
  for (const each of clients) {
    each.close();
  }
  if (child !== undefined && child.exitCode === null) {
    const ended = new Promise((resolve) => child?.once("exit", resolve));
    child.kill("SIGTERM");
    await ended;
  }
  rmSync(directory, { recursive: true, force: true });
});
