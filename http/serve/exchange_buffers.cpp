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
// What a new one has room for. Most need no more.
constexpr std::size_t kOutBytes = 240;
constexpr std::size_t kFields = 16;
// Of those that are more than a P needs at a time.
constexpr std::size_t kSurplusBytes = 1 << 10;
constexpr std::size_t kSurplusFields = 32;

inline void shrink(std::string& text) {
  text.clear();
  if (text.capacity() > kKeptBytes) [[unlikely]]
    std::string().swap(text);  // an assignment keeps the memory
}

}  // namespace

ExchangeBuffers* ExchangeBuffers::take() {
  if (rt::CacheNode* node = cache().take(); node != nullptr) return static_cast<ExchangeBuffers*>(node);
  auto* made = new ExchangeBuffers;
  made->out.reserve(kOutBytes);
  made->head.fields.reserve(kFields);
  return made;
}

void ExchangeBuffers::give_back(ExchangeBuffers* buffers) {
  shrink(buffers->out);
  buffers->sent_early = false;
  if (cache().put(buffers)) return;
  // What is kept beyond that is kept small.
  for (std::string* text :
       {&buffers->out, &buffers->extra, &buffers->trailers, &buffers->body, &buffers->pulled}) {
    if (text->capacity() > kSurplusBytes) std::string().swap(*text);
  }
  buffers->input.give_back_above(kSurplusBytes);
  if (buffers->head.fields.capacity() > kSurplusFields)
    decltype(buffers->head.fields)().swap(buffers->head.fields);
  if (!cache().put_surplus(buffers)) delete buffers;
}

void ExchangeBuffers::end_request() {
  input.end_request();
  path_values.clear();
  pattern = {};
  client.reset();
  mounted_bytes = 0;
  // Shrink even empty strings: for a body that did not arrive, space may already be reserved.
  chunks.drop_trailers();
  shrink(extra);
  shrink(trailers);
  shrink(body);
  shrink(pulled);
  if (arena_used_) {
    arena_.release();
    arena_used_ = false;
  }
}

}  // namespace tuza::http
