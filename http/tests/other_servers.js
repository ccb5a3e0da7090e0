// node other_servers.js PORT TLS_PORT FOLDER: what clients meet on servers in Node. Prints nothing.
"use strict";
const fs = require("fs"), http = require("http"), https = require("https"), zlib = require("zlib");
const [port, tlsPort, folder] = process.argv.slice(2);
const text = "line\n".repeat(100_000);

const answers = {
  // The body comes back in chunks, with its trailers.
  "/echo": (req, res) => {
    res.writeHead(200, {Trailer: "X-Sum"});
    req.on("data", piece => res.write(piece));
    req.on("end", () => {
      res.addTrailers({"X-Sum": req.trailers["x-sum"] || "none"});
      res.end();
    });
  },
  "/hints": (req, res) => {
    res.writeProcessing();
    res.writeEarlyHints({link: "</a.css>; rel=preload"});
    res.end("after hints");
  },
  "/gzip": (req, res) => res.writeHead(200, {"Content-Encoding": "gzip"}).end(zlib.gzipSync(text)),
  "/br": (req, res) => {
    res.writeHead(200, {"Content-Encoding": "br"});
    const coder = zlib.createBrotliCompress();
    coder.pipe(res);
    for (const piece of text.match(/[^]{1,5000}/g)) coder.write(piece);
    coder.end();
  },
  // Before the body has come; node closes the connection behind it.
  "/early": (req, res) => res.writeHead(413, {Connection: "close"}).end("too large"),
  "/close-idle": (req, res) => res.end("closed", () => setImmediate(() => servers.forEach(each => each.closeIdleConnections()))),
  "/die-in-head": req => req.socket.write("HTTP/1.1 200 O", () => req.socket.destroy()),
  "/die-in-body": (req, res) => {
    res.writeHead(200, {"Content-Length": 10});
    res.write("half", () => req.socket.destroy());
  },
  "/die-in-chunk": (req, res) => res.write("half", () => req.socket.destroy()),
  "/once-more": (req, res) => res.writeHead(307, {Location: "/echo"}).end(),
  "/names": (req, res) => res.end(JSON.stringify(req.rawHeaders)),
};

function answer(req, res) {
  const known = answers[req.url];
  if (known) return known(req, res);
  res.writeHead(404).end();
}

const servers = [
  http.createServer(answer),
  https.createServer({cert: fs.readFileSync(folder + "/site.pem"), key: fs.readFileSync(folder + "/site.key")}, answer),
];
for (const server of servers) {
  server.on("checkContinue", (req, res) => {
    if (req.url === "/refuse") return res.writeHead(417, {Connection: "close"}).end("refused");
    res.writeContinue();
    answer(req, res);
  });
}
servers[0].listen(port, "127.0.0.1");
servers[1].listen(tlsPort, "127.0.0.1");
