/** Adds to a tarball what the repository has elsewhere: the compiled files and the licence. */
import { execFileSync } from "node:child_process";
import { copyFileSync, rmSync } from "node:fs";

rmSync("dist", { recursive: true, force: true });
execFileSync("npm", ["run", "--silent", "build"], { stdio: "inherit" });
copyFileSync("../../LICENSE", "LICENSE");
