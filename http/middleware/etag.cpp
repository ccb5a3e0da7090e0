#include <tuza/http/middleware/etag.h>

#include <tuza/http/files/preconditions.h>
#include <tuza/http/serve/exchange.h>
#include <tuza/http/wire/chars.h>
#include <tuza/http/wire/digest.h>
#include <tuza/http/wire/list.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace tuza::http {
namespace {

constexpr std::size_t kTagBytes = 16;  // of the hash: enough that nobody finds two bodies with the same tag

std::string tag_of(std::string_view body) {
  const Sha256Digest hash = sha256_of(body);
  std::string tag = "\"";
  for (std::size_t i = 0; i < kTagBytes; ++i) {
    tag += "0123456789abcdef"[hash[i] >> 4];
    tag += "0123456789abcdef"[hash[i] & 15];
  }
  return tag + '"';
}

bool may_be_stored(const ResponseWriter& response) {
  for (const HeaderField field : response.headers()) {
    if (!equals_ignoring_case(field.name, "Cache-Control")) continue;
    for (std::string_view rest = field.value; !rest.empty();) {
      if (equals_ignoring_case(take_item(rest, ','), "no-store")) return false;
    }
  }
  return true;
}

void tag(Request& request, ResponseWriter& response) {
  Exchange& exchange = request.exchange();
  const std::string_view body = exchange.held_body();
  if (response.status_code() != 200 || body.empty() || response.header("ETag") || !may_be_stored(response)) {
    return;
  }
  const std::string tag = tag_of(body);
  response.set_header("ETag", tag);
  const std::optional<std::string> known = combined_header(request, "If-None-Match");
  if (!known || !matches_any(*known, tag, false)) return;
  exchange.replace_held_body({});
  answer_not_modified(response);
}

}  // namespace

Middleware etag() {
  return [](Handler next) -> Handler {
    return [next = std::move(next)](Request& request, ResponseWriter& response) {
      next(request, response);
      if (request.method() != Method::kGet || !request.exchange().reopen_response()) return;
      tag(request, response);
      request.exchange().settle_response();
    };
  };
}

}  // namespace tuza::http
