// The calls of Request that negotiate.
#include <tuza/http/negotiate.h>
#include <tuza/http/request.h>
#include <tuza/http/serve/exchange.h>
#include <tuza/http/wire/chars.h>

#include <memory_resource>
#include <vector>

namespace tuza::http {
namespace {

// The values of all fields of that name; in memory of the request.
std::pmr::vector<std::string_view> values_of(Exchange& exchange, std::string_view name) {
  std::pmr::vector<std::string_view> values(&exchange.buffers().arena());
  for (const HeaderField field : ReceivedHeaders(exchange.buffers().head, exchange.buffers().head_base)) {
    if (equals_ignoring_case(field.name, name)) values.push_back(field.value);
  }
  return values;
}

}  // namespace

std::optional<std::string_view> Request::accepts(Offered offered) const {
  return choose_media_type(values_of(exchange_, "Accept"), offered);
}
std::optional<std::string_view> Request::accepts_language(Offered offered) const {
  return choose_language(values_of(exchange_, "Accept-Language"), offered);
}
std::optional<std::string_view> Request::accepts_encoding(Offered offered) const {
  return choose_encoding(values_of(exchange_, "Accept-Encoding"), offered);
}

}  // namespace tuza::http
