#include <tuza/http/serve/exchange_buffers.h>

namespace tuza::http {
namespace {

rt::PerPCache& cache() {
  static rt::PerPCache instance;
  return instance;
}

// A large response or body must not be kept for ever in each of the working sets it passed through.
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
  // Also of what is empty: a body that did not come has its room already.
  shrink(extra);
  shrink(body);
  shrink(pulled);
  if (arena_used_) {
    arena_.release();
    arena_used_ = false;
  }
}

}  // namespace tuza::http
