#include <tuza/http/header_range.h>

#include <tuza/http/serve/exchange_buffers.h>
#include <tuza/http/wire/chars.h>

namespace tuza::http {

std::size_t RequestHeaders::size() const { return buffers_->head.field_count; }

HeaderField RequestHeaders::iterator::operator*() const {
  const Head::Field& field = buffers_->head.fields[index_];
  return {field.name.in(buffers_->head_base), trim(field.value.in(buffers_->head_base))};
}

HeaderField HeaderLines::iterator::operator*() const {
  const std::string_view line = left_.substr(0, left_.find("\r\n"));
  const std::size_t colon = line.find(": ");
  return {line.substr(0, colon), line.substr(colon + 2)};
}

HeaderLines::iterator& HeaderLines::iterator::operator++() {
  left_.remove_prefix(left_.find("\r\n") + 2);
  return *this;
}

}  // namespace tuza::http
