// What a request costs in allocations, for a server and for a client: none, once the connection's working set is warm.
#include <tuza/http/client.h>
#include <tuza/http/router.h>
#include <tuza/http/tests/client_testing.h>
#include <tuza/http/tests/http_testing.h>
#include <tuza/sched/sync/tests/counting_new.h>

#include <array>
#include <string>

namespace tuza::http::testing {
namespace {

using tuza::testing::allocations;
using tuza::testing::run_with;
using tuza::testing::WithProcs;

class AllocationTest : public WithProcs {};
TUZA_WITH_PROCS(AllocationTest);

Router counted_routes() {
  Router router;
  router.handle("GET /text", [](Request&, ResponseWriter& res) { res.text("Hello, World!"); });
  router.handle("GET /items/{id}", [](Request& req, ResponseWriter& res) {
    res.set_header("X-Item", req.path_value("id").value_or(""));
    res.set_header("X-Agent", req.header("User-Agent").value_or(""));
    res.json(201, R"({"name":"tea"})");
  });
  router.handle("POST /echo", [](Request& req, ResponseWriter& res) {
    if (const auto body = req.body()) res.text(*body);
  });
  router.handle("GET /pieces", [](Request&, ResponseWriter& res) {
    for (int i = 0; i < 3; ++i) (void)res.write("a piece of it");
  });
  return router;
}

// Sends the requests in one write and reads `bytes` of responses, without an allocation of its own.
void exchange(net::Conn& conn, std::string_view requests, std::size_t bytes) {
  ASSERT_TRUE(conn.write_all(requests));
  std::array<std::byte, 4096> buffer;
  for (std::size_t got = 0; got < bytes;) {
    const Result<std::size_t> n = conn.read(std::span(buffer));
    ASSERT_TRUE(n && *n > 0);
    got += *n;
    ASSERT_LE(got, bytes);
  }
}

TEST_P(AllocationTest, NoneForARequestInSteadyState) {
  run_with(GetParam(), [] {
    TestServer server(counted_routes());
    for (const std::string& request : {get("/text"), get("/items/7"), post("/echo", "a body"), get("/pieces"),
                                       get("/text") + get("/text")}) {
      std::size_t bytes = 0;
      {
        RawClient once(server.address());
        once.send(request);
        for (const Response& response : once.read_responses(request.contains("\r\n\r\nGET") ? 2 : 1)) {
          EXPECT_LT(response.status, 300) << request;
        }
        bytes = once.received().size();
      }
      net::Conn conn = net::dial("tcp", server.address()).value();
      // The warm-up ends with a round that allocates nothing: a goroutine may meet a P that has no working set yet, and
      // the one that closed the connection before may still be ending.
      constexpr int kRounds = 50;
      std::uint64_t allocated = 1;
      for (int attempt = 0; attempt < 20 && allocated != 0; ++attempt) {
        const std::uint64_t before = allocations();
        for (int i = 0; i < kRounds; ++i) exchange(conn, request, bytes);
        allocated = allocations() - before;
      }
      EXPECT_EQ(allocated, 0U) << "in " << kRounds << " times " << request;
    }
  });
}

// Sends the request, and reads the response without an allocation of its own.
void exchange(Client& client, ClientRequest& request) {
  Result<ClientResponse> res = client.send(kNoContext, request);
  ASSERT_TRUE(res) << res.error().message();
  ASSERT_LT(res->status(), 300);
  std::array<std::byte, 4096> buffer;
  while (res->read(std::span(buffer)).value() > 0) {
  }
}

TEST_P(AllocationTest, NoneForARequestOfAClientInSteadyState) {
  run_with(GetParam(), [] {
    TestServer server(counted_routes());
    Client client;
    const std::string base = "http://" + server.address();
    const std::string query = "?a=long&query=that&fits=in&no=short&string=at&all";
    ClientRequest text(Method::kGet, base + "/text"), item(Method::kGet, base + "/items/7" + query),
        echo(Method::kPost, base + "/echo"), pieces(Method::kGet, base + "/pieces");
    item.set_header("X-Trace", "a value that fits in no short string either").set_header("Accept", "*/*");
    echo.set_body("a body that fits in no short string", "text/plain");
    for (ClientRequest* request : {&text, &item, &echo, &pieces}) {
      constexpr int kRounds = 50;
      std::uint64_t allocated = 1;
      for (int attempt = 0; attempt < 20 && allocated != 0; ++attempt) {
        const std::uint64_t before = allocations();
        for (int i = 0; i < kRounds; ++i) exchange(client, *request);
        allocated = allocations() - before;
      }
      EXPECT_EQ(allocated, 0U) << "in " << kRounds << " times " << request->url()->to_string();
    }
  });
}

}  // namespace
}  // namespace tuza::http::testing
