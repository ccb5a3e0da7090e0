// The code on docs/guide/http-client.md.
#include <tuza/http.h>
#include <tuza/http/nlohmann_json.h>
#include <tuza/net.h>
#include <tuza/sync.h>
#include <tuza/tuza.h>

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace http_client_page {

using tuza::http::Client;
using tuza::http::ClientRequest;
using tuza::http::ClientResponse;
using tuza::http::Method;
using tuza::http::Request;
using tuza::http::ResponseWriter;

//! [get]
Client client;  // one for the whole program

tuza::Result<std::string> page(const tuza::Context& ctx, std::string_view url) {
  TUZA_TRY(auto res, client.get(ctx, url));
  if (res.status() != 200) return std::unexpected(tuza::errorf("{}: {}", url, res.reason()));
  return res.body();
}
//! [get]

//! [handler]
void weather(Request& req, ResponseWriter& res) {
  auto answer = page(req.context(), "https://weather.example/today");  // ends when our own client goes away
  if (!answer) return res.error(502);
  res.send("application/json", *answer);
}
//! [handler]

//! [request]
tuza::Result<int> store(const tuza::Context& ctx, std::string json) {
  ClientRequest request(Method::kPut, "https://api.example/items/7");
  request.set_header("Authorization", "Bearer 1").set_body(std::move(json), "application/json");
  TUZA_TRY(auto res, client.send(ctx, request));
  return res.status();
}
//! [request]

//! [json]
struct Rate {
  std::string currency;
  double euros = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Rate, currency, euros)

tuza::Result<Rate> rate(const tuza::Context& ctx, std::string_view currency) {
  TUZA_TRY(auto res, client.get(ctx, "https://bank.example/rates/" + tuza::http::path_escape(currency)));
  if (res.status() != 200) return std::unexpected(tuza::errorf("rate of {}: {}", currency, res.reason()));
  return res.json<Rate>();
}

tuza::Result<int> store(const tuza::Context& ctx, const Rate& rate) {
  ClientRequest request(Method::kPut, "https://bank.example/rates/" + tuza::http::path_escape(rate.currency));
  TUZA_TRY(auto res, client.send(ctx, request.set_basic_auth("clerk", "secret").set_json(rate)));
  return res.status();
}
//! [json]

//! [form]
tuza::Result<int> hand_in(const tuza::Context& ctx, std::string_view title, const std::string& path) {
  tuza::http::MultipartForm form;
  form.add("title", title);
  TUZA_TRY(form.add_file("photo", path));  // read while it is sent
  ClientRequest request(Method::kPost, "https://photos.example/");
  TUZA_TRY(auto res, client.send(ctx, request.set_multipart(std::move(form))));
  return res.status();
}
//! [form]

//! [segment]
void item(Request& req, ResponseWriter& res) {
  const std::string name = tuza::http::path_escape(req.path_value("item").value_or(""));
  auto answer = page(req.context(), "https://stock.example/items/" + name + "/price");
  if (!answer) return res.error(502);
  res.json(*answer);
}
//! [segment]

//! [next]
void logged_in(Request& req, ResponseWriter& res) {
  static const auto here = tuza::http::Url::parse("https://shop.example/login").value();
  const auto next = here.resolve(req.query_value("next").value_or("/"));
  const bool ours = next && next->origin() == here.origin();
  res.redirect(ours ? next->to_string() : "/");
}
//! [next]

tuza::Result<ClientResponse> put_file(const tuza::Context& ctx, const std::string& path,
                                      std::string_view to) {
  //! [opener]
  ClientRequest upload(Method::kPut, to);
  upload.set_body_opener([path]() -> tuza::Result<ClientRequest::BodySource> {
    TUZA_TRY(auto file, tuza::File::open(path));
    return [file = std::move(file)](const tuza::Context&, std::span<std::byte> into) mutable {
      return file.read(into);
    };
  });
  //! [opener]
  return client.send(ctx, upload);
}

//! [stream]
tuza::Result<void> copy(const tuza::Context& ctx, std::string_view from, std::string_view to) {
  TUZA_TRY(auto source, client.get(ctx, from));
  ClientRequest upload(Method::kPut, to);
  upload.set_body_source([&](std::span<std::byte> into) { return source.read(into); },
                         source.content_length());
  TUZA_TRY(auto stored, client.send(ctx, upload));
  if (stored.status() / 100 != 2) return std::unexpected(tuza::errorf("{}: {}", to, stored.reason()));
  return {};
}
//! [stream]

//! [pass-on]
// An upload goes on to where files are kept, while it arrives.
void store(Request& req, ResponseWriter& res) {
  ClientRequest put(Method::kPut, "http://files.internal" + std::string(req.path()));
  put.set_body_source(
      [&](const tuza::Context& ctx, std::span<std::byte> into) { return req.read_body(ctx, into); },
      req.content_length());
  const auto stored = client.send(req.context(), put);
  if (!stored) throw tuza::http::StatusError(502);
  res.status(stored->status());
}
//! [pass-on]

//! [options]
Client docker({.address = "unix:/run/docker.sock"});  // whatever host a URL names
Client careful({.connections_per_origin_max = 8,
                .tls = {.ca_file = "/etc/app/ca.pem"},
                .timeout = std::chrono::seconds(5),
                .body_bytes_max = 64 << 10,
                .redirects_max = 0});
//! [options]

//! [proxy]
Client office({.proxy = {.http = "http://proxy.example:3128",
                         .https = "http://user:secret@proxy.example:3128",
                         .except = ".internal.example, 10.0.0.0/8"}});

tuza::Result<std::string> page_outside(const tuza::Context& ctx, std::string_view url) {
  TUZA_TRY(auto proxies, tuza::http::proxies_from_environment());
  Client outside({.proxy = std::move(proxies)});
  TUZA_TRY(auto res, outside.get(ctx, url));
  return res.body();
}
//! [proxy]

//! [many]
std::vector<std::string> all(const tuza::Context& ctx, const std::vector<std::string>& urls) {
  std::vector<std::string> pages(urls.size());
  tuza::WaitGroup group;
  for (std::size_t i = 0; i < urls.size(); ++i)
    group.go([&, i] { pages[i] = page(ctx, urls[i]).value_or(""); });
  group.wait();
  return pages;
}
//! [many]

//! [middleware]
tuza::http::ClientMiddleware with_token(std::string token) {
  return [field = "Bearer " + std::move(token)](const tuza::Context& ctx, ClientRequest& request,
                                                const tuza::http::ClientNext& next) {
    if (request.url()->authority == "api.example") request.set_header("Authorization", field);
    return next(ctx, request);
  };
}

Client api({.middleware = {with_token("1234")}});
//! [middleware]

//! [cookies]
const auto jar = std::make_shared<tuza::http::CookieJar>();
Client visitor({.middleware = {tuza::http::client_cookies(jar)}});
//! [cookies]

}  // namespace http_client_page
