// A client for client_servers_test.py: client_driver [OPTIONS]
//
// Each line of standard input is a request in JSON, and each line of standard output its response, or {"error": "..."}. All
// requests go through one Client; OPTIONS are some of its ClientOptions.
//
//     {"method": "PUT", "url": "http://h/", "headers": [["A", "b"]], "body": "text", "expect": true}
//     {"method": "PUT", "url": "http://h/", "source": 5000000, "length": true, "trailer": "X-Sum"}    made while it is sent
//     {"status": 201, "headers": [["A", "b"]], "trailers": [], "bytes": 2, "text": "ok", "sha256": "Jok9...", ...}
#include <tuza/http/client.h>
#include <tuza/http/method.h>
#include <tuza/sched/run.h>
#include <tuza/sched/sync/context.h>
#include <tuza/sched/try.h>

#include <openssl/evp.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace {

using nlohmann::json;
using tuza::Result;
namespace http = tuza::http;

constexpr std::size_t kBodyMax = 100 << 20;
constexpr std::size_t kTextMax = 1000;  // of a body in an answer

std::string sha256_in_base64(std::string_view text) {
  std::array<unsigned char, 32> digest;
  EVP_Digest(text.data(), text.size(), digest.data(), nullptr, EVP_sha256(), nullptr);
  std::array<unsigned char, 45> base64;
  EVP_EncodeBlock(base64.data(), digest.data(), digest.size());
  return reinterpret_cast<const char*>(base64.data());
}

http::ClientOptions options_of(const json& given) {
  http::ClientOptions options;
  options.address = given.value("address", "");
  options.proxy = {.http = given.value("proxy", ""), .https = given.value("proxy", ""), .loopback = true};
  options.tls.ca_file = given.value("ca_file", "");
  options.tls.certificate = {given.value("chain_file", ""), given.value("key_file", "")};
  return options;
}

// Bytes that differ from place to place.
struct Source {
  Result<std::size_t> operator()(std::span<std::byte> into) {
    const std::size_t count = std::min(into.size(), left);
    for (std::byte& byte : into.first(count)) byte = static_cast<std::byte>('a' + left-- % 26);
    return count;
  }
  std::size_t left;
};

http::ClientRequest request_of(const json& line) {
  const auto method = http::parse_method(line.value("method", "GET"));
  http::ClientRequest request(method.value(), line.at("url").get<std::string>());
  for (const json& field : line.value("headers", json::array()))
    request.add_header(field[0].get<std::string>(), field[1].get<std::string>());
  if (line.contains("body")) request.set_body(line["body"].get<std::string>(), "text/plain");
  if (line.contains("source")) {
    const std::size_t bytes = line["source"];
    request.set_body_source(Source{bytes},
                            line.value("length", false) ? std::optional<std::uint64_t>(bytes) : std::nullopt);
  }
  if (line.contains("trailer")) request.add_trailer(line["trailer"].get<std::string>(), "behind");
  if (line.value("expect", false)) request.expect_continue();
  if (line.value("keep_sending", false)) request.keep_sending();
  return request;
}

template <class Fields>
json list_of(const Fields& fields) {
  json list = json::array();
  for (const auto& [name, value] : fields) list.push_back({std::string(name), std::string(value)});
  return list;
}

Result<json> answer_to(http::Client& client, const json& line) {
  http::ClientRequest request = request_of(line);
  TUZA_TRY(auto res, client.send(tuza::Context::background(), request));
  TUZA_TRY(const std::string body, res.body(kBodyMax));
  const http::ClientStats stats = client.stats();
  return json{{"status", res.status()},
              {"version_minor", res.version_minor()},
              {"url", res.url().to_string()},
              {"headers", list_of(res.headers())},
              {"trailers", list_of(res.trailers())},
              {"decompressed", res.decompressed()},
              {"bytes", body.size()},
              {"sha256", sha256_in_base64(body)},
              {"text", body.substr(0, kTextMax)},
              {"dialled", stats.dialled},
              {"idle", stats.idle},
              {"repeated", stats.repeated}};
}

}  // namespace

int main(int argc, char** argv) {
  return tuza::run([&] {
    http::Client client(options_of(argc > 1 ? json::parse(argv[1]) : json::object()));
    std::string line;
    while (std::getline(std::cin, line)) {
      const Result<json> answer = answer_to(client, json::parse(line));
      const json printed = answer ? *answer : json{{"error", answer.error().message()}};
      std::cout << printed.dump(-1, ' ', false, json::error_handler_t::replace) << std::endl;
    }
  });
}
