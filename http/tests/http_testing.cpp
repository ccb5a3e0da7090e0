#include <tuza/http/tests/http_testing.h>

#include <tuza/http/wire/chars.h>
#include <tuza/sched/goroutine_dump.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <utility>

namespace tuza::http::testing {

TestServer::TestServer(Handler handler, ServerOptions options, std::shared_ptr<net::TlsServer> tls)
    : server_(std::move(handler), std::move(options)) {
  net::Listener listener = net::listen("tcp", "127.0.0.1:0").value();
  if (tls) listener.use_tls(std::move(tls));
  const Result<void> listening = server_.listen(std::move(listener));
  EXPECT_TRUE(listening) << listening.error().message();
  serving_.go([this] {
    const Result<void> served = server_.serve();
    EXPECT_TRUE(served) << served.error().message();
  });
}

TestServer::~TestServer() {
  server_.shutdown();
  serving_.wait();
}

std::string Response::header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? "" : found->second;
}

namespace {

// Takes the body at `at`, and moves `at` to the end of the body. Returns false if the body is incomplete.
bool take_body(std::string_view bytes, std::size_t& at, bool closed, Response& response) {
  if (response.header("transfer-encoding") == "chunked") {
    for (;;) {
      const std::size_t line = bytes.find("\r\n", at);
      if (line == std::string_view::npos) return false;
      std::size_t size = 0;
      std::from_chars(bytes.data() + at, bytes.data() + line, size, 16);
      at = line + 2;
      if (size == 0) {  // behind it, trailers and an empty line
        const std::size_t end = bytes.find("\r\n\r\n", line);
        at = std::min(end, bytes.size() - 4) + 4;
        return end != std::string_view::npos;
      }
      if (bytes.size() < at + size + 2) return false;
      response.body += bytes.substr(at, size);
      at += size + 2;
    }
  }
  if (response.has("content-length")) {
    const std::size_t size = std::stoul(response.header("content-length"));
    if (bytes.size() - at < size && !closed) return false;  // avoids a copy each time more of it has come
    response.body = bytes.substr(at, size);
    at = std::min(at + size, bytes.size());
    return response.body.size() == size;
  }
  response.body = bytes.substr(at);
  at = bytes.size();
  return closed;
}

}  // namespace

std::vector<Response> parse_responses(std::string_view bytes, bool closed, bool to_head) {
  std::vector<Response> responses;
  std::size_t at = 0;
  while (at < bytes.size()) {
    Response response;
    const std::size_t end = bytes.find("\r\n\r\n", at);
    if (end == std::string_view::npos || bytes.substr(at, 7) != "HTTP/1.") {
      if (end != std::string_view::npos || closed) responses.push_back(response);
      break;
    }
    response.status = std::stoi(std::string(bytes.substr(at + 9, 3)));
    for (std::size_t line = bytes.find("\r\n", at) + 2; line < end + 2;) {
      const std::size_t next = bytes.find("\r\n", line);
      const std::string_view field = bytes.substr(line, next - line);
      const std::size_t colon = std::min(field.find(':'), field.size());
      std::string name(field.substr(0, colon));
      std::transform(name.begin(), name.end(), name.begin(), lower);
      response.headers.emplace(name, trim(field.substr(std::min(colon + 1, field.size()))));
      line = next + 2;
    }
    at = end + 4;
    const bool final = response.status >= 200;
    const bool bodiless = !final || response.status == 204 || response.status == 304 || to_head;
    if (final) to_head = false;
    response.complete = bodiless || take_body(bytes, at, closed, response);
    responses.push_back(response);
    if (!response.complete) break;
  }
  return responses;
}

RawClient::RawClient(const std::string& address) : conn_(net::dial("tcp", address).value()) {}

void RawClient::send(std::string_view bytes) { (void)conn_.write_all(bytes); }

bool RawClient::read_some(std::chrono::milliseconds patience) {
  std::array<char, 16384> buffer;
  conn_.set_read_deadline(net::time_after_now(patience));
  const Result<std::size_t> n = conn_.read(std::span(buffer));
  if (n && *n > 0) {
    received_.append(buffer.data(), *n);
    return true;
  }
  closed_ = n || !n.error().timeout();  // the end, or a reset
  if (!closed_ && patience >= kPatience) std::fputs(dump_goroutines().c_str(), stderr);
  return false;
}

std::vector<Response> RawClient::read_responses(std::size_t n, bool to_head) {
  const auto final_ones = [&] {
    std::vector<Response> all = parse_responses(received_, closed_, to_head);
    std::erase_if(all, [](const Response& r) { return !r.complete || (r.status >= 100 && r.status < 200); });
    return all;
  };
  read_until([&] { return final_ones().size() >= n; });
  return final_ones();
}

Response fetch(const std::string& address, std::string_view request, bool to_head) {
  RawClient client(address);
  client.send(request);
  std::vector<Response> responses = client.read_responses(1, to_head);
  return responses.empty() ? Response{} : responses.front();
}

Router hello_router() {
  Router router;
  router.handle("GET /{$}", [](Request&, ResponseWriter& res) { res.text("Hello, World!"); });
  router.handle("POST /echo", [](Request& req, ResponseWriter& res) {
    if (const auto body = req.body()) res.send("application/octet-stream", *body);
  });
  return router;
}

Handler saying(std::string text) {
  return [text = std::move(text)](Request&, ResponseWriter& res) { res.text(text); };
}

std::string post(std::string_view path, std::string_view body, std::string_view fields) {
  return "POST " + std::string(path) + " HTTP/1.1\r\nHost: localhost\r\n" + std::string(fields) +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}
}  // namespace tuza::http::testing
