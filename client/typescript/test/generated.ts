import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";

import { PACKAGE, ROOT } from "./server.js";

function filesUnder(folder: string): Map<string, string> {
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".ts"));
  return new Map(names.sort().map((name) => [name, readFileSync(join(folder, name), "utf8")]));
}

describe("the generated code", () => {
  it("is what proto/ says", () => {
    const folder = mkdtempSync(join(tmpdir(), "gradewire-"));
    try {
      const path = `${join(PACKAGE, "node_modules/.bin")}:${process.env["PATH"]}`;
      const options = { cwd: PACKAGE, env: { ...process.env, PATH: path } };
      execFileSync("buf", ["generate", join(ROOT, "proto"), "--output", folder], options);
      assert.deepEqual(filesUnder(join(folder, "src/gen")), filesUnder(join(PACKAGE, "src/gen")));
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
