import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { equals } from "@bufbuild/protobuf";

import { connectOverHttp } from "../src/http.js";
import {
  ItemResultSchema,
  mayPass,
  metric,
  ModelState,
  type ScoreResponse,
  SmilePreset,
  Status,
  Winner,
} from "../src/index.js";
import { ITEMS, METRICS } from "./rows.js";
import { client, server, TOKEN } from "./server.js";

function check(reply: ScoreResponse): void {
  assert.deepEqual(
    reply.items.map((item) => item.id),
    ITEMS.map((item) => item.id),
  );
  const smiles = reply.items.map((item) => item.results[1]);
  assert.deepEqual(
    smiles.map((result) => result?.status),
    [Status.OK, Status.OK, Status.OK, Status.EMPTY_PREDICTION],
  );
  const [right, wrong, japanese, empty] = smiles.map((result) => result?.score);
  assert.ok(right !== undefined && wrong !== undefined && japanese !== undefined);
  assert.ok(right > wrong);
  assert.equal(empty, undefined);
  assert.equal(smiles[0]?.parts.case, "smile");
  assert.match(reply.provenance[1]?.line ?? "", /^smile/);
}

describe("a call", () => {
  it("scores items by several metrics, in any script", async () => {
    const { scoring } = await client();
    check(await scoring.score({ items: ITEMS, metrics: METRICS }));
  });

  it("gives over HTTP what it gives over gRPC, bit for bit", async () => {
    const request = { items: ITEMS, metrics: METRICS, omitDiagnostics: true };
    const http = connectOverHttp((await server()).api, { token: TOKEN });
    const [overHttp, overGrpc] = [await http.scoring.score(request), await (await client()).scoring.score(request)];
    check(overHttp);
    for (const [at, item] of overGrpc.items.entries()) {
      const twin = overHttp.items[at];
      assert.ok(twin !== undefined && equals(ItemResultSchema, item, twin));
    }
  });

  it("takes parameters of a metric, which come back in its provenance", async () => {
    const { scoring } = await client();
    const metrics = [metric("smile", { preset: SmilePreset.FAST })];
    const { provenance } = await scoring.score({ items: ITEMS.slice(0, 1), metrics });
    const used = provenance[0]?.metric?.metric;
    assert.ok(used?.case === "smile" && used.value.preset === SmilePreset.FAST);
    assert.match(provenance[0]?.modelDigest ?? "", /^[0-9a-f]{64}$/);
  });

  it("lists what the server can do", async () => {
    const { models, metrics, limits, serverVersion } = await (await client()).models.list({});
    assert.ok(models.some((model) => model.kind === "encoder" && model.state === ModelState.LOADED));
    assert.ok(metrics.some((each) => each.name === "smile" && each.available));
    assert.ok((limits?.maxItemsPerRequest ?? 0) > 0);
    assert.match(serverVersion, /^\d+\.\d+/);
  });

  it("prepares references over either way in, and scores against them", async () => {
    const entries = [{ references: ["cat"], syntheticAnswers: ["The animal is a cat."] }];
    const request = { entries, metrics: METRICS, referenceSet: "typescript" };
    const grpc = await client();
    for (const { references } of [grpc, connectOverHttp((await server()).api, { token: TOKEN })]) {
      const last = [];
      for await (const progress of references.prepare(request)) {
        last.push(progress);
      }
      assert.deepEqual(last.map((progress) => progress.complete).at(-1), true);
      assert.equal(last.at(-1)?.syntheticAnswersStored, 1);
    }
  });

  it("compares two answers by a real judge", async () => {
    const { judging } = await client({ deadlineMs: 100_000 });
    const pair = { question: "What sleeps?", answerA: "A cat.", answerB: "A cat." };
    const { pairs } = await judging.compare({ pairs: [pair, { ...pair, answerB: "" }, { ...pair, answerB: "A dog." }] });
    assert.deepEqual(
      pairs.slice(0, 2).map(({ status, winner }) => [status, winner]),
      [
        [Status.OK, Winner.TIE],
        [Status.EMPTY_PREDICTION, Winner.UNSPECIFIED],
      ],
    );
    // Which one a judge of this size prefers is chance; that it was asked in both orders is not.
    assert.ok([Status.OK, Status.INCONSISTENT].includes(pairs[2]?.status ?? Status.UNSPECIFIED));
    assert.equal(pairs[2]?.orders.length, 2);
  });

  it("says of a status whether trying again helps", () => {
    assert.ok(mayPass(Status.TIMEOUT) && mayPass(Status.UNAVAILABLE));
    assert.ok(!mayPass(Status.OK) && !mayPass(Status.INVALID_INPUT) && !mayPass(Status.INTERNAL));
  });

});
