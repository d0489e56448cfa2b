import assert from "node:assert/strict";
import { createServer, type Server } from "node:http";
import { createServer as createTcpServer } from "node:net";
import { describe, it } from "node:test";

import { ConnectError } from "@connectrpc/connect";

import { connectOverHttp } from "../src/http.js";
import { Code, connect, GradewireError, metric } from "../src/index.js";
import { ITEMS, METRICS } from "./rows.js";
import { client, server, TOKEN } from "./server.js";

async function failureOf(call: Promise<unknown>): Promise<GradewireError> {
  const [settled] = await Promise.allSettled([call]);
  assert.equal(settled.status, "rejected");
  assert.ok(settled.reason instanceof GradewireError, String(settled.reason));
  return settled.reason;
}

async function freePort(): Promise<number> {
  const probe = createTcpServer();
  await new Promise<void>((resolve) => probe.listen(0, "127.0.0.1", resolve));
  const address = probe.address();
  assert.ok(typeof address === "object" && address !== null);
  await new Promise((resolve) => probe.close(resolve));
  return address.port;
}

/** An HTTP server of ours in the place of a proxy or of a full gateway, which cannot be had when a test wants it. */
async function answering(replies: { status: number; type: string; body: string }[]): Promise<[Server, string]> {
  const made = createServer((_, response) => {
    const { status, type, body } = replies.shift() ?? { status: 500, type: "text/plain", body: "no more" };
    response.writeHead(status, { "content-type": type }).end(body);
  });
  await new Promise<void>((resolve) => made.listen(0, "127.0.0.1", resolve));
  const address = made.address();
  assert.ok(typeof address === "object" && address !== null);
  return [made, `http://127.0.0.1:${address.port}`];
}

describe("an error", () => {
  it("names the field at fault, the same over gRPC and HTTP", async () => {
    const request = { items: ITEMS, metrics: [metric("smile", { preset: 99 as never })] };
    const overHttp = connectOverHttp((await server()).api, { token: TOKEN });
    const grpc = await failureOf((await client()).scoring.score(request));
    const http = await failureOf(overHttp.scoring.score(request));
    for (const error of [grpc, http]) {
      assert.equal(error.code, Code.InvalidArgument);
      assert.equal(error.field, "metrics[0].smile.preset");
      assert.equal(error.mayPass, false);
      assert.ok(error.requestId);
    }
    assert.equal(http.rawMessage, grpc.rawMessage);
  });

  it("is a ConnectError, and not every ConnectError is one", async () => {
    const error = await failureOf((await client()).scoring.score({ items: ITEMS }));
    assert.ok(error instanceof ConnectError);
    assert.equal(ConnectError.from(error), error);
    assert.ok(!(new ConnectError("foreign") instanceof GradewireError));
  });

  it("is none because a deadline lies weeks ahead, beyond what timers can wait", async () => {
    const overHttp = connectOverHttp((await server()).api, { token: TOKEN });
    const timeoutMs = 30 * 24 * 3_600_000;
    for (const one of [await client(), overHttp]) {
      assert.equal((await one.scoring.score({ items: ITEMS, metrics: METRICS }, { timeoutMs })).items.length, ITEMS.length);
    }
  });

  it("tells a wrong token, none, and one that may not", async () => {
    const { url, api } = await server();
    const expected = [
      ["wrong", Code.Unauthenticated],
      [undefined, Code.Unauthenticated],
      ["narrow", Code.PermissionDenied],
    ] as const;
    for (const [token, code] of expected) {
      const policy = token === undefined ? {} : { token };
      const grpc = connect(url, policy);
      const http = connectOverHttp(api, policy);
      for (const { scoring } of [grpc, http]) {
        const error = await failureOf(scoring.score({ items: ITEMS, metrics: METRICS }));
        assert.equal(error.code, code);
        assert.equal(error.mayPass, false);
      }
      grpc.close();
    }
  });

  it("tells that the deadline passed", async () => {
    const items = Array.from({ length: 200 }, (_, at) => ({
      references: [`reference ${at}`],
      prediction: `answer ${at}, ${"which goes on and on ".repeat(20)}`,
    }));
    const request = { items, metrics: METRICS };
    const http = connectOverHttp((await server()).api, { token: TOKEN });
    for (const { scoring } of [await client(), http]) {
      const error = await failureOf(scoring.score(request, { timeoutMs: 5 }));
      assert.equal(error.code, Code.DeadlineExceeded, error.message);
    }
  });

  it("tells of a server that is not there, after trying until the deadline", async () => {
    const nobody = `http://127.0.0.1:${await freePort()}`;
    const grpc = connect(nobody, { deadlineMs: 400 });
    for (const { models } of [grpc, connectOverHttp(nobody, { deadlineMs: 400 })]) {
      const error = await failureOf(models.list({}));
      assert.equal(error.code, Code.Unavailable);
      assert.equal(error.mayPass, true);
      assert.match(error.rawMessage, /tried [23] times in 0\.\d s/);
    }
    grpc.close();
  });

  it("ends a call that its caller cancels, and all of a client that is closed", async () => {
    const grpc = await client();
    const stop = new AbortController();
    const call = failureOf(grpc.scoring.score({ items: ITEMS, metrics: METRICS }, { signal: stop.signal }));
    stop.abort();
    assert.equal((await call).code, Code.Canceled);

    const closed = connect((await server()).url, { token: TOKEN });
    await closed.models.list({});
    closed.close();
    assert.equal((await failureOf(closed.models.list({}))).code, Code.Canceled);
  });

  it("says that HTTP takes no stream of requests", async () => {
    const { scoring } = connectOverHttp((await server()).api, { token: TOKEN });
    const read = async (): Promise<void> => {
      for await (const reply of scoring.scoreStream((async function* () {})())) {
        assert.fail(String(reply));
      }
    };
    assert.equal((await failureOf(read())).code, Code.Unimplemented);
  });
});

describe("a call that fails", () => {
  const full = { status: 429, type: "application/problem+json", body: "" };
  const busy = { ...full, body: JSON.stringify({ code: "resource_exhausted", detail: "busy", retryAfterS: 0.05 }) };
  const tooLarge = { ...full, status: 413, body: JSON.stringify({ code: "resource_exhausted", detail: "too large" }) };
  const away = { status: 502, type: "text/html", body: "<p>bad gateway</p>" };
  const listed = { status: 200, type: "application/json", body: '{"serverVersion": "1.2.3", "newer": 1}' };

  it("is made again where the server says when, and where a proxy says that it is away", async () => {
    const [proxy, url] = await answering([busy, away, listed]);
    const { serverVersion } = await connectOverHttp(url).models.list({});
    assert.equal(serverVersion, "1.2.3");
    proxy.close();
  });

  it("is not made again where that does not help", async () => {
    const [proxy, url] = await answering([tooLarge, listed]);
    const error = await failureOf(connectOverHttp(url).models.list({}));
    assert.deepEqual([error.code, error.rawMessage, error.mayPass], [Code.ResourceExhausted, "too large", false]);
    proxy.close();
  });
});
