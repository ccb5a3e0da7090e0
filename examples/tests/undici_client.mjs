// Node's fetch (undici) against examples/: node undici_client.mjs CRUD_PORT UPLOAD_PORT SSE_PORT. Exit status 0 if all is as expected.
import assert from "node:assert/strict";
import {createHash, randomBytes} from "node:crypto";

const [crud, upload, sse] = process.argv.slice(2).map(port => `http://127.0.0.1:${port}`);
const json = value => ({method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify(value)});
const digest = bytes => createHash("sha256").update(bytes).digest("hex");

// Forms of a session: cookies, JSON both ways, statuses without a body, many requests at once on few connections.
const signed = await fetch(`${crud}/api/session`, json({user: "ada \u2603"}));
assert.equal(signed.status, 204);
const headers = {Cookie: signed.headers.getSetCookie()[0].split(";")[0]};
const add = async title => {
  const {method, headers: type, body} = json({title});
  const made = await fetch(`${crud}/api/tasks`, {method, headers: {...headers, ...type}, body});
  assert.equal(made.status, 201);
  return {path: made.headers.get("location"), task: await made.json()};
};
const all = await Promise.all(Array.from({length: 100}, (_, i) => add(`task ${i}`)));
assert.equal(new Set(all.map(one => one.path)).size, 100);
assert.deepEqual(await (await fetch(crud + all[7].path, {headers})).json(), all[7].task);
const gone = await Promise.all(all.map(({path}) => fetch(crud + path, {method: "DELETE", headers})));
assert.ok(gone.every(one => one.status === 204));
assert.deepEqual(await (await fetch(`${crud}/api/tasks`, {headers})).json(), []);
assert.equal((await fetch(`${crud}/api/tasks`)).status, 401);
const head = await fetch(`${crud}/`, {method: "HEAD"});
assert.ok(Number(head.headers.get("content-length")) > 0);

// Forms with files, downloads, and ranges of them.
const content = randomBytes(3_000_000), form = new FormData();
form.set("text", "not a file");
form.set("file", new Blob([content]), "K\u00e4se \u2603.bin");
const stored = await fetch(`${upload}/files`, {method: "POST", body: form});
assert.equal(stored.status, 201);
const [{id, name, bytes}] = await stored.json();
assert.deepEqual([name, bytes], ["K\u00e4se \u2603.bin", content.length]);
const loaded = await fetch(`${upload}/files/${id}`);
assert.equal(digest(Buffer.from(await loaded.arrayBuffer())), digest(content));
const part = await fetch(`${upload}/files/${id}`, {headers: {Range: "bytes=1000-1999"}});
assert.deepEqual([part.status, Buffer.from(await part.arrayBuffer())], [206, content.subarray(1000, 2000)]);
const same = await fetch(`${upload}/files/${id}`, {headers: {"If-None-Match": loaded.headers.get("etag")}});
assert.equal(same.status, 304);

// A body without a length, which is made while it is sent; a client that stops in the middle of one.
const boundary = "----undici";
const pieces = [`--${boundary}\r\nContent-Disposition: form-data; name="f"; filename="a"\r\n\r\n`, "one ", "two", `\r\n--${boundary}--\r\n`];
const streamed = pieces => new ReadableStream({
  async pull(controller) {
    await new Promise(resolve => setTimeout(resolve, 10));
    if (pieces.length === 0) return controller.close();
    const piece = pieces.shift();
    if (piece instanceof Error) return controller.error(piece);
    controller.enqueue(new TextEncoder().encode(piece));
  },
});
const sending = (body) => fetch(`${upload}/files`, {
  method: "POST", duplex: "half", headers: {"Content-Type": `multipart/form-data; boundary=${boundary}`}, body,
});
assert.equal((await (await sending(streamed([...pieces]))).json())[0].bytes, 7);
await assert.rejects(sending(streamed([pieces[0], "half", new Error("stopped")])));
assert.equal((await (await fetch(`${upload}/files`)).json()).length, 2);

// An event stream that is left.
const leaving = new AbortController();
const stream = await fetch(`${sse}/events`, {signal: leaving.signal});
assert.equal(stream.headers.get("content-type"), "text/event-stream");
let heard = "";
for await (const piece of stream.body.pipeThrough(new TextDecoderStream())) {
  heard += piece;
  if (heard.includes("event: tick")) break;
}
leaving.abort();
assert.match(heard, /id: \d+\nevent: tick\ndata: \d\d:\d\d:\d\d\n\n/);
