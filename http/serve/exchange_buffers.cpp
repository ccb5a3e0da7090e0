#include <tuza/http/serve/exchange_buffers.h>

namespace tuza::http {
namespace {

rt::PerPCache& cache() {
  static rt::PerPCache instance;
  return instance;
}

// Without this limit, each working set that a large response or body passed through would stay large for
// ever.
constexpr std::size_t kKeptBytes = 64 << 10;

void shrink(std::string& text) {
  text.clear();
  if (text.capacity() > kKeptBytes) text.shrink_to_fit();
}

}  // namespace

ExchangeBuffers* ExchangeBuffers::take() {
  if (rt::CacheNode* node = cache().take(); node != nullptr) return static_cast<ExchangeBuffers*>(node);
  auto* made = new ExchangeBuffers;
  made->out.reserve(4096);
  return made;
}

void ExchangeBuffers::give_back(ExchangeBuffers* buffers) {
  shrink(buffers->out);
  cache().put(buffers);
}

void ExchangeBuffers::end_request() {
  input.end_request();
  path_value_count = 0;
  // Shrink even empty strings: for a body that did not arrive, space may already be reserved.
  shrink(extra);
  shrink(body);
  shrink(pulled);
  if (arena_used_) {
    arena_.release();
    arena_used_ = false;
  }
}

}  // namespace tuza::http
