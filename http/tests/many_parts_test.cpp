// Requests that are made of very many parts: they are counted or refused with a name, and take time in proportion.
#include <tuza/http/multipart.h>
#include <tuza/http/request.h>
#include <tuza/http/response_writer.h>
#include <tuza/http/testing.h>

#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <string>
#include <string_view>

namespace tuza::http::testing {
namespace {

constexpr int kMany = 100'000;

std::string repeated(std::string_view part, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += part;
  return all;
}

CallResult cookies(int count, std::size_t head_bytes_max) {
  return call(
      [](Request& req, ResponseWriter& res) {
        const RequestCookies all = req.cookies();
        res.text(std::to_string(std::distance(all.begin(), all.end())) +
                 std::string(req.cookie("last").value_or(" none")));
      },
      "GET /",
      {.headers = {{"Cookie", repeated("a=1;", count)}}, .server = {.head_bytes_max = head_bytes_max}});
}

CallResult form(int count, std::size_t count_max) {
  return call(
      [count_max](Request& req, ResponseWriter& res) {
        res.text(std::to_string(req.form(1 << 20, count_max).size()));
      },
      "POST /",
      {.headers = {{"Content-Type", "application/x-www-form-urlencoded"}},
       .body = repeated("a=%31&", count)});
}

CallResult multipart(int count, std::size_t parts_max) {
  return call(
      [parts_max](Request& req, ResponseWriter& res) {
        Multipart parts(req, {.parts_max = parts_max});
        int seen = 0;
        while (parts.next() != nullptr) ++seen;
        res.text(std::to_string(seen));
      },
      "POST /",
      {.headers = {{"Content-Type", "multipart/form-data; boundary=b"}},
       .body = repeated("--b\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n", count) + "--b--\r\n"});
}

// The CPU time of the shortest of some runs: what else the machine does counts little.
template <class Run>
std::int64_t cpu_ns(Run run) {
  const auto now = [] {
    struct timespec time{};
    EXPECT_EQ(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time), 0);
    return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
  };
  std::int64_t shortest = std::numeric_limits<std::int64_t>::max();
  for (int i = 0; i < 3; ++i) {
    const std::int64_t began = now();
    run();
    shortest = std::min(shortest, now() - began);
  }
  return shortest;
}

TEST(ManyParts, AreCountedOrRefused) {
  EXPECT_EQ(cookies(kMany, 1 << 20).body, "100000 none");
  EXPECT_EQ(cookies(kMany, ServerOptions().head_bytes_max).status, 431);
  EXPECT_EQ(form(kMany, kMany).body, "100000");
  const CallResult fields = form(kMany, Values::kCountMax);
  EXPECT_EQ(fields.status, 400);
  EXPECT_EQ(fields.body, "too many fields in the form\n");
  EXPECT_EQ(multipart(kMany, kMany).body, "100000");
  EXPECT_EQ(multipart(kMany, MultipartLimits().parts_max).status, 413);
}

// Ten times as many take about ten times as long; a search in each step would take a hundred times as long.
TEST(ManyParts, TakeTimeInProportionToTheirNumber) {
  const auto expect_linear = [](auto run) {
    constexpr int kGrowthMax = 50;
    EXPECT_LT(cpu_ns([&] { (void)run(kMany); }), kGrowthMax * cpu_ns([&] { (void)run(kMany / 10); }));
  };
  expect_linear([](int count) { return cookies(count, 1 << 20); });
  expect_linear([](int count) { return form(count, kMany); });
  expect_linear([](int count) { return multipart(count, kMany); });
}

}  // namespace
}  // namespace tuza::http::testing
