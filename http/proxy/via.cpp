#include <tuza/http/proxy/via.h>

#include <tuza/http/proxy/passed_fields.h>
#include <tuza/http/serve/field_lists.h>
#include <tuza/http/wire/chars.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <random>
#include <stdexcept>

namespace tuza::http {
namespace {

constexpr std::size_t kPassesMax = 4;

// "1.1 name (comment)", "HTTP/1.1 name"
bool names(std::string_view entry, std::string_view name) {
  const std::size_t space = entry.find(' ');
  if (space == std::string_view::npos) return false;
  entry.remove_prefix(space + 1);
  return entry.starts_with(name) && (entry.size() == name.size() || entry[name.size()] == ' ');
}

}  // namespace

Via::Via(std::string_view name) : name_(name) {
  if (name.empty()) return;
  if (!std::ranges::all_of(name, [](char c) { return is(c, kTokenChar); }))
    throw std::invalid_argument("ReverseProxyOptions: via is no token: " + name_);
  std::array<char, 8> digits;
  const auto [end, error] = std::to_chars(digits.begin(), digits.end(), std::random_device()(), 16);
  name_.append("-").append(digits.begin(), end);
  for (std::size_t minor = 0; minor < entries_.size(); ++minor)
    entries_[minor] = "1." + std::to_string(minor) + " " + name_;
}

bool Via::loops(const Request& req) const {
  if (name_.empty()) return false;
  std::size_t passes = 0;
  each_element(req.headers(), "Via", [&](std::string_view entry) { passes += names(entry, name_) ? 1 : 0; });
  return passes >= kPassesMax;
}

void Via::add(const Request& in, ClientRequest& out) const {
  if (!name_.empty()) add_known_field(out, "Via", entries_[in.version_minor() == 0 ? 0 : 1]);
}

}  // namespace tuza::http
