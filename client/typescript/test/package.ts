import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";

import { PACKAGE, ROOT, server, TOKEN } from "./server.js";

const README = readFileSync(join(PACKAGE, "README.md"), "utf8");
const EXAMPLES = [...README.matchAll(/```ts\n(.*?)```/gs)].map((match) => match[1] ?? "");

/** Runs a program to its end; what it writes to standard output. */
function run(program: string, args: string[], cwd: string): string {
  return execFileSync(program, args, { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });
}

describe("the package", () => {
  it("has the version of gradewire and its licence", () => {
    const { version, license } = JSON.parse(readFileSync(join(PACKAGE, "package.json"), "utf8"));
    assert.match(readFileSync(join(ROOT, "pyproject.toml"), "utf8"), new RegExp(`^version = "${version}"$`, "m"));
    assert.equal(license, "Apache-2.0");
  });

  it("asks for the Node that its dependencies ask for", () => {
    const { engines, dependencies } = JSON.parse(readFileSync(join(PACKAGE, "package.json"), "utf8"));
    const asked = Object.keys(dependencies).map((name) => {
      const { engines } = JSON.parse(readFileSync(join(PACKAGE, "node_modules", name, "package.json"), "utf8"));
      return Number(/^>=(\d+)/.exec(engines?.node ?? ">=0")?.[1]);
    });
    assert.equal(engines.node, `>=${Math.max(...asked)}`);
    assert.match(README, new RegExp(`Node ${Math.max(...asked)} or later`));
  });

  it("names no address in its lock file", () => {
    assert.doesNotMatch(readFileSync(join(PACKAGE, "package-lock.json"), "utf8"), /"resolved"/);
  });

  it("installs from its tarball, and the examples of its README compile and run", async () => {
    const { url, api } = await server();
    const folder = mkdtempSync(join(tmpdir(), "gradewire-"));
    try {
      const [packed] = JSON.parse(run("npm", ["pack", "--json", "--pack-destination", folder], PACKAGE));
      const names = packed.files.map((file: { path: string }) => file.path);
      assert.ok(names.includes("LICENSE") && names.includes("dist/index.d.ts") && names.includes("dist/http.js"));
      assert.ok(!names.some((name: string) => /(^|\/)(test|src)\//.test(name)));
      writeFileSync(join(folder, "package.json"), '{"type": "module", "private": true}');
      const quiet = ["--prefer-offline", "--no-audit", "--no-fund", "--omit=dev", "--loglevel=error"];
      run("npm", ["install", ...quiet, join(folder, packed.filename)], folder);
      assert.equal(EXAMPLES.length, 4);
      for (const [at, example] of EXAMPLES.entries()) {
        const here = example
          .replaceAll("http://127.0.0.1:50051", url)
          .replaceAll("http://127.0.0.1:8080", api)
          .replaceAll('"TOKEN"', JSON.stringify(TOKEN));
        writeFileSync(join(folder, `example${at}.ts`), here);
      }
      const strict = ["--strict", "--target", "es2022", "--module", "nodenext", "--types", "node"];
      const types = ["--typeRoots", join(PACKAGE, "node_modules/@types")];
      const sources = EXAMPLES.map((_, at) => `example${at}.ts`);
      run(join(PACKAGE, "node_modules/.bin/tsc"), [...strict, ...types, ...sources], folder);
      const said = EXAMPLES.map((_, at) => run(process.execPath, [`example${at}.js`], folder));
      assert.match(said[0] ?? "", /^right 0\.\d+\nempty EMPTY_PREDICTION\n$/);
      assert.match(said[1] ?? "", /^1000 items\n$/);
      assert.match(said[2] ?? "", /^metrics\[0\]\.smile\.preset: /);
      assert.match(said[3] ?? "", /^0\.\d+\n$/);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
