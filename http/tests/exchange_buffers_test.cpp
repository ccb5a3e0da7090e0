// What working sets keep from one request to the next.
#include <tuza/http/serve/exchange_buffers.h>
#include <tuza/sched/tests/testing.h>

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <string>
#include <vector>

namespace tuza::http {
namespace {

using tuza::testing::run_with;

TEST(ExchangeBuffersTest, DoesNotKeepALargeResponse) {
  run_with(1, [] {
    ExchangeBuffers* buffers = ExchangeBuffers::take();
    buffers->out.assign(1 << 20, 'x');
    ExchangeBuffers::give_back(buffers);
    // No other goroutine could have taken the buffers. Taking them again and checking is not equivalent: a
    // goroutine that has lost its P to another in between gets new buffers.
    EXPECT_TRUE(buffers->out.empty());
    EXPECT_LE(buffers->out.capacity(), std::size_t{64} << 10);
  });
}

// A response that failed before its first byte had room for 1 MiB, and left that memory in the working set
// for ever.
TEST(ExchangeBuffersTest, DoesNotKeepTheRoomOfABodyThatDidNotCome) {
  run_with(1, [] {
    ExchangeBuffers* buffers = ExchangeBuffers::take();
    for (std::string* text : {&buffers->pulled, &buffers->body, &buffers->extra}) text->reserve(1 << 20);
    buffers->end_request();
    for (std::string* text : {&buffers->pulled, &buffers->body, &buffers->extra}) {
      EXPECT_LE(text->capacity(), std::size_t{64} << 10);
    }
    ExchangeBuffers::give_back(buffers);
  });
}

// What more connections than usual have needed is kept, but small.
TEST(ExchangeBuffersTest, ASurplusWorkingSetIsSmall) {
  // What other tests of this process have left would be given out instead, as a P has kept it.
  std::vector<ExchangeBuffers*> left(4096);
  for (ExchangeBuffers*& one : left) one = ExchangeBuffers::take();
  ExchangeBuffers* buffers = ExchangeBuffers::take();
  const auto texts = [](ExchangeBuffers& of) {
    return std::array{&of.out, &of.extra, &of.trailers, &of.body, &of.pulled};
  };
  for (std::string* text : texts(*buffers)) text->reserve(32 << 10);
  buffers->head.fields.reserve(200);
  ExchangeBuffers::give_back(buffers);  // no P that could keep it
  buffers = ExchangeBuffers::take();
  for (const std::string* text : texts(*buffers)) EXPECT_LE(text->capacity(), 1U << 10);
  EXPECT_LT(buffers->head.fields.capacity(), 200U);
  ExchangeBuffers::give_back(buffers);
  for (ExchangeBuffers* one : left) ExchangeBuffers::give_back(one);
}

}  // namespace
}  // namespace tuza::http
