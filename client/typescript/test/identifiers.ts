import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { toJson } from "@bufbuild/protobuf";

import { connectOverHttp } from "../src/http.js";
import { Code, GradewireError, metric, MetricSpecSchema, SmilePreset, type ScoreResponse } from "../src/index.js";
import { ITEMS } from "./rows.js";
import { client, server, TOKEN } from "./server.js";

const RIGHT = [
  "smile",
  "smile:fast",
  "smile:v1/1?sentence_weight=0.5&synthetic=none",
  "calibrated?grader=none",
  "bertscore?measure=recall&rescale=false&layer=3",
  "exact_match,token_f1/1",
  " rouge_l?measure=precision ",
];

const WRONG = [
  "smyle",
  "smile:quick",
  "smile?weight=1",
  "smile?sentence_weight",
  "smile?sentence_weight=heavy",
  "smile?sentence_weight=0.1&sentence_weight=0.2",
  "bertscore?rescale=yes",
  "bertscore?layer=-1",
  "exact_match:fast",
  "smile?synthetic=some",
  "",
  "smile fast",
];

/** The HTTP API's reply to JSON as it is, whose identifiers the Python client's parser reads. */
async function post(body: unknown): Promise<{ status: number; body: any }> {
  const headers = { "content-type": "application/json", authorization: `Bearer ${TOKEN}` };
  const url = `${(await server()).api}/gradewire.v1.Scoring/Score`;
  const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
  return { status: response.status, body: await response.json() };
}

/** What an error says in the words that both parsers share, whatever quotes are around a text. */
function words(text: string): string {
  return text.replaceAll(/["']/g, "'").replace(/: use one of .*|; its parameters: .*/, "");
}

describe("a metric identifier", () => {
  for (const identifier of RIGHT) {
    it(`'${identifier}' gives what the Python client's parser gives`, async () => {
      const { scoring } = await client();
      const ours = await scoring.score({ items: ITEMS.slice(0, 1), metrics: [identifier] });
      const theirs = await post({ items: ITEMS.slice(0, 1), metrics: [identifier] });
      assert.equal(theirs.status, 200, theirs.body.detail);
      assert.deepEqual(
        ours.provenance.map((each) => each.line),
        theirs.body.provenance.map((each: { line: string }) => each.line),
      );
      assert.deepEqual(
        ours.provenance.map((each) => each.metric && toJson(MetricSpecSchema, each.metric)),
        theirs.body.provenance.map((each: { metric: unknown }) => each.metric),
      );
    });
  }

  for (const identifier of WRONG) {
    it(`'${identifier}' is refused in the same words, and no call is made`, async () => {
      const { scoring } = await client();
      const theirs = await post({ items: ITEMS.slice(0, 1), metrics: ["exact_match", identifier] });
      await assert.rejects(scoring.score({ items: [], metrics: [metric("exactMatch"), identifier] }), (error) => {
        assert.ok(error instanceof GradewireError);
        assert.deepEqual([error.code, error.field, error.requestId], [Code.InvalidArgument, "metrics[1]", undefined]);
        assert.equal(words(error.rawMessage), words(theirs.body.detail));
        return true;
      });
    });
  }

  it("stands beside metrics, over HTTP and in a stream too", async () => {
    const metrics = [metric("smile", { preset: SmilePreset.FAST }), "exact_match"];
    const items = ITEMS.slice(0, 2);
    const names = (reply: ScoreResponse): string[] => reply.provenance.map((each) => each.name);
    const http = connectOverHttp((await server()).api, { token: TOKEN });
    assert.deepEqual(names(await http.scoring.score({ items, metrics })), ["smile", "exact_match"]);
    const counts: number[] = [];
    for await (const { results } of (await client()).scoreStream(items, { metrics })) {
      counts.push(results.length);
    }
    assert.deepEqual(counts, [2, 2]);
  });

  it("of a result gives its scores again, and no other version", async () => {
    const { scoring } = await client();
    const items = ITEMS.slice(0, 2);
    const first = await scoring.score({ items, metrics: ["smile:fast"] });
    const line = first.provenance[0]?.line ?? "";
    const again = await scoring.score({ items, metrics: [line] });
    assert.equal(again.provenance[0]?.line, line);
    assert.deepEqual(
      again.items.map((item) => item.results[0]?.score),
      first.items.map((item) => item.results[0]?.score),
    );
    await assert.rejects(scoring.score({ items, metrics: ["smile/99"] }), (error) => {
      assert.ok(error instanceof GradewireError);
      assert.equal(error.field, "metrics[0].version");
      return true;
    });
  });

  it("names the call's reference set", async () => {
    const { scoring, references } = await client();
    const entries = [{ references: ["cat"], syntheticAnswers: ["The animal is a cat."] }];
    for await (const _ of references.prepare({ entries, metrics: ["smile"], referenceSet: "identified" })) {
      // Only the set is needed.
    }
    const items = [{ references: ["cat"], prediction: "The animal is a cat." }];
    const reply = await scoring.score({ items, metrics: ["smile?reference_set=identified"] });
    assert.equal(reply.provenance[0]?.referenceSet.split("@")[0], "identified");
    const two = scoring.score({ items, referenceSet: "other", metrics: ["smile?reference_set=identified"] });
    await assert.rejects(two, /reference_set names 'other' and metrics\[0\] names 'identified', but a call has one/);
  });
});
