// The code on docs/guide/sse.md.
#include <tuza/http.h>
#include <tuza/tuza.h>

#include <optional>
#include <string>
#include <string_view>

namespace sse_page {

using tuza::http::Request;
using tuza::http::ResponseWriter;

struct Item {
  std::string text, id;
};
std::optional<Item> next_after(const tuza::Context&, std::string_view) { return std::nullopt; }

//! [events]
void news(Request& req, ResponseWriter& res) {
  auto stream = tuza::http::sse(req, res);
  std::string last(stream.last_event_id().value_or("0"));
  while (auto item = next_after(stream.context(), last)) {
    if (!stream.send({.data = item->text, .event = "news", .id = item->id})) return;  // the client has gone
    last = item->id;
  }
}
//! [events]

}  // namespace sse_page
