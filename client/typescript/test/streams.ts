import assert from "node:assert/strict";
import { connect as dial, createServer, type Server, type Socket } from "node:net";
import { describe, it } from "node:test";

import { Code, connect, GradewireError, metric, Status } from "../src/index.js";
import { ITEMS, METRICS, numbered, type Row } from "./rows.js";
import { client, server, TOKEN } from "./server.js";

const EXACT = { metrics: [metric("exactMatch")] };

/** Passes bytes on, until it is told to break all connections. */
async function proxyTo(port: number): Promise<{ url: string; breakAll: () => void; close: () => void }> {
  const sockets = new Set<Socket>();
  const proxy: Server = createServer((near) => {
    const far = dial(port, "127.0.0.1");
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(one);
      one.pipe(other);
      one.on("error", () => other.destroy());
      one.on("close", () => other.destroy());
    }
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  const address = proxy.address();
  assert.ok(typeof address === "object" && address !== null);
  const breakAll = (): void => sockets.forEach((socket) => socket.destroy());
  const close = (): void => {
    breakAll();
    proxy.close();
  };
  return { url: `http://127.0.0.1:${address.port}`, breakAll, close };
}

describe("a stream", () => {
  it("gives each item back once, with the results that a single call gives", async () => {
    const grpc = await client();
    const { items } = await grpc.scoring.score({ items: ITEMS, metrics: METRICS });
    const found = [];
    for await (const item of grpc.scoreStream(ITEMS, { metrics: METRICS })) {
      found.push(item);
    }
    found.sort((one, other) => Number(one.index - other.index));
    assert.deepEqual(
      found.map((item) => [item.id, item.results.map((result) => [result.metricIndex, result.score])]),
      items.map((item) => [item.id, item.results.map((result) => [result.metricIndex, result.score])]),
    );
  });

  it("reads an endless source no further than aheadRows beyond what was taken", async () => {
    let read = 0;
    async function* endless(): AsyncGenerator<Row> {
      for (;;) {
        read += 1;
        yield { id: `${read}`, references: ["a"], prediction: "a" };
      }
    }
    let taken = 0;
    for await (const item of (await client()).scoreStream(endless(), EXACT, { aheadRows: 8 })) {
      assert.equal(item.results[0]?.status, Status.OK);
      taken += 1;
      await new Promise((wake) => setTimeout(wake, 1));
      // One more lies in the source's hand.
      assert.ok(read <= taken + 9, `${read} read, ${taken} taken`);
      if (taken === 100) {
        break;
      }
    }
    const readAtTheEnd = read;
    await new Promise((wake) => setTimeout(wake, 30));
    assert.equal(read, readAtTheEnd);
  });

  it("goes on with the unfinished items on a new connection when one breaks", async () => {
    const proxy = await proxyTo(Number(new URL((await server()).url).port));
    const broken = connect(proxy.url, { token: TOKEN });
    try {
      const seen = new Set<string>();
      let breaks = 0;
      for await (const item of broken.scoreStream(numbered(2_000), EXACT)) {
        assert.ok(!seen.has(item.id));
        seen.add(item.id);
        assert.equal(item.id, String(item.index));
        assert.equal(item.results[0]?.score, Number(item.id) % 10 === Number(item.id) % 7 ? 1 : 0);
        if (seen.size === 300 || seen.size === 1_200) {
          proxy.breakAll();
          breaks += 1;
        }
      }
      assert.equal(seen.size, 2_000);
      assert.equal(breaks, 2);
    } finally {
      broken.close();
      proxy.close();
    }
  });

  it("ends when its signal says so, and when its source fails", async () => {
    const grpc = await client();
    const stop = new AbortController();
    await assert.rejects(
      async () => {
        for await (const item of grpc.scoreStream(numbered(100_000), EXACT, { signal: stop.signal })) {
          assert.ok(item.complete);
          stop.abort();
        }
      },
      (error) => error instanceof GradewireError && error.code === Code.Canceled,
    );
    function* failing(): Generator<Row> {
      yield* numbered(3);
      throw new RangeError("the source is at fault");
    }
    await assert.rejects(async () => {
      for await (const item of grpc.scoreStream(failing(), EXACT)) {
        assert.ok(item.complete);
      }
    }, RangeError);
  });

  it("fails at once for what trying again does not mend", async () => {
    const grpc = await client();
    await assert.rejects(
      async () => {
        for await (const item of grpc.scoreStream(ITEMS, { metrics: [] })) {
          assert.fail(item.id);
        }
      },
      (error) => error instanceof GradewireError && error.code === Code.InvalidArgument,
    );
  });

  it("compares pairs, of which those that look the same need no judge", async () => {
    const pairs = [..."abc"].map((id) => ({ id, question: "Which?", answerA: "The same.", answerB: "The same." }));
    const found = [];
    for await (const pair of (await client()).compareStream(pairs)) {
      found.push(`${pair.index}${pair.id}${pair.decidedBy}`);
    }
    assert.deepEqual(found.sort(), ["0arule", "1brule", "2crule"]);
  });
});
