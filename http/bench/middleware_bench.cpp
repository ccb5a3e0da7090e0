// What middleware costs: a handler, plain and wrapped; the difference is the middleware's.
#include <tuza/http/middleware/access_log.h>
#include <tuza/http/middleware/compress.h>
#include <tuza/http/middleware/cors.h>
#include <tuza/http/middleware/recover.h>
#include <tuza/http/middleware/request_id.h>
#include <tuza/http/middleware/secure_headers.h>
#include <tuza/http/serve/exchange.h>
#include <tuza/http/testing.h>

#include <benchmark/benchmark.h>
#include <zlib.h>

#include <array>
#include <stdexcept>
#include <string>

namespace tuza::http {
namespace {

// JSON of about 10 KB, as an interface of a service returns it.
const std::string& document() {
  static const std::string text = [] {
    std::string json = "[";
    for (int i = 0; json.size() < 10'000; ++i) {
      json += R"({"id":)" + std::to_string(i * 7919 % 10'007) + R"(,"name":"item )" + std::to_string(i * i) +
              R"(","price":)" + std::to_string(i * 31 % 997) + R"(.5,"tags":["a","b"]},)";
    }
    json.back() = ']';
    return json;
  }();
  return text;
}

void json(Request&, ResponseWriter& res) { res.json(document()); }
void hello(Request&, ResponseWriter& res) { res.text("Hello, World!"); }

// Calls the handler again and again in one exchange, whose response is dropped each time: what carries the exchange is not
// measured.
void measure(benchmark::State& state, const Handler& handler, const testing::CallOptions& options) {
  const auto repeated = [&](Request& req, ResponseWriter& res) {
    for (auto _ : state) {
      handler(req, res);
      if (res.status_code() != 200) throw std::logic_error("the wrong answer");
      req.exchange().drop_prepared_response();
    }
  };
  if (testing::call(repeated, "GET /", options).exception) throw std::logic_error("a handler has thrown");
}

const testing::CallOptions kGzip{.headers = {{"Accept-Encoding", "gzip"}}};

void BM_HttpPlain(benchmark::State& state) { measure(state, hello, {}); }
void BM_HttpFiveMiddlewares(benchmark::State& state) {
  measure(state,
          with(hello, access_log({}), recover(), request_id(), secure_headers(),
               cors({.origins = {"https://example.com"}})),
          {});
}
void BM_HttpUnusedCompress(benchmark::State& state) { measure(state, with(hello, compress()), {}); }
void BM_HttpJson10K(benchmark::State& state) { measure(state, json, kGzip); }
void BM_HttpJson10KGzip(benchmark::State& state) { measure(state, with(json, compress()), kGzip); }

// The same bytes by zlib alone, with a stream that is used again.
void BM_ZlibJson10K(benchmark::State& state) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::array<char, 16 << 10> out;
  for (auto _ : state) {
    deflateReset(&stream);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(document().data()));
    stream.avail_in = static_cast<uInt>(document().size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = out.size();
    if (deflate(&stream, Z_FINISH) != Z_STREAM_END) throw std::logic_error("deflate");
    benchmark::DoNotOptimize(out.data());
  }
  deflateEnd(&stream);
}

BENCHMARK(BM_HttpPlain);
BENCHMARK(BM_HttpFiveMiddlewares);
BENCHMARK(BM_HttpUnusedCompress);
BENCHMARK(BM_HttpJson10K);
BENCHMARK(BM_HttpJson10KGzip);
BENCHMARK(BM_ZlibJson10K);

}  // namespace
}  // namespace tuza::http
