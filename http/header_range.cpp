#include <tuza/http/header_range.h>

#include <tuza/http/wire/chars.h>
#include <tuza/http/wire/head.h>

namespace tuza::http {
namespace {

template <class Fields>
std::optional<std::string_view> find_in(const Fields& fields, std::string_view name) {
  for (const HeaderField field : fields) {
    if (equals_ignoring_case(field.name, name)) return field.value;
  }
  return std::nullopt;
}

}  // namespace

std::size_t ReceivedHeaders::size() const { return head_->fields.size(); }

HeaderField ReceivedHeaders::iterator::operator*() const {
  const Head::Field& field = head_->fields[index_];
  return {field.name.in(base_), field.value.in(base_)};
}

std::optional<std::string_view> ReceivedHeaders::find(std::string_view name) const {
  return find_in(*this, name);
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

std::optional<std::string_view> HeaderLines::find(std::string_view name) const {
  return find_in(*this, name);
}

}  // namespace tuza::http
