// A node of the tree of patterns, and what is registered there.
//
// What a search reads is in the first 64 bytes of a node: a large service has megabytes of routes, and each cache line that
// is not in the cache costs as much as the rest of the step.
#pragma once

#include <tuza/http/handler.h>
#include <tuza/http/method.h>
#include <tuza/http/serve/exchange_buffers.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tuza::http {

struct alignas(64) Route {
  // What a search reads, in one cache line up to the seventh name.
  std::string pattern;
  struct Name {
    std::uint16_t begin = 0, size = 0;  // in `pattern`; no size: the value is not kept
  };
  std::uint8_t name_count = 0;
  // Of the wildcards, in order; behind them there may be the rest after a slash, which has none.
  std::array<Name, ExchangeBuffers::kPathValuesMax + 1> names{};
  [[nodiscard]] std::string_view name(std::size_t i) const {
    return std::string_view(pattern).substr(names[i].begin, names[i].size);
  }

  Handler handler;
  std::source_location where;  // it was registered
};

class alignas(64) RouteNode {
 public:
  // `text`: of the segment; empty for wildcards and roots.
  explicit RouteNode(const RouteNode* above = nullptr, std::string_view segment = {})
      : parent(above), text_bytes_(static_cast<std::uint32_t>(segment.size())) {
    const std::size_t inside = std::min(segment.size(), sizeof text_);
    segment.copy(text_, inside);  // not memcpy(): an empty view may have no address
    more_text_ = segment.substr(inside);
  }

  // -- What a search reads.
  const RouteNode* const parent;
  std::unique_ptr<RouteNode> name;  // {name}
  std::unique_ptr<RouteNode> end;   // {$}; a leaf
  std::unique_ptr<RouteNode> rest;  // {name...}; a leaf

  // The route that answers `method`; null: none.
  [[nodiscard]] const Route* route(Method method) const {
    return only_ != nullptr && only_method_ == method ? only_ : other_route(method);
  }
  [[nodiscard]] bool has_text(std::string_view text) const {
    if (text.size() != text_bytes_) return false;
    if (text.size() > sizeof text_) {
      return std::memcmp(text.data(), text_, sizeof text_) == 0 && text.substr(sizeof text_) == more_text_;
    }
    // Two words that may overlap take less time than a call of memcmp().
    if (text.size() >= 8) return same_ends<std::uint64_t>(text.data(), text.size());
    if (text.size() >= 4) return same_ends<std::uint32_t>(text.data(), text.size());
    return std::equal(text.begin(), text.end(), text_);
  }

 private:
  const Route* only_ = nullptr;  // the one route here, if it is for one method
  const std::uint32_t text_bytes_;
  Method only_method_{};
  char text_[16];  // the beginning

  // For a size between that of a word and twice that.
  template <class Word>
  [[nodiscard]] bool same_ends(const char* text, std::size_t size) const {
    Word words[4];
    std::memcpy(&words[0], text, sizeof(Word));
    std::memcpy(&words[1], text_, sizeof(Word));
    std::memcpy(&words[2], text + size - sizeof(Word), sizeof(Word));
    std::memcpy(&words[3], text_ + size - sizeof(Word), sizeof(Word));
    return ((words[0] ^ words[1]) | (words[2] ^ words[3])) == 0;
  }

 public:
  // -- The rest.
  std::vector<std::unique_ptr<RouteNode>> texts;  // in the order of their registration

  // `method`: nullopt for all. There must be no route for the same.
  void add(std::optional<Method> method, std::unique_ptr<Route> route);
  // The route that was registered for exactly that; nullopt: for all methods.
  [[nodiscard]] const Route* registered(std::optional<Method> method) const {
    return (method ? by_method_[static_cast<std::size_t>(*method)] : any_method_).get();
  }
  // Adds the methods that it answers, one bit for each.
  void add_allowed(unsigned& methods) const;

 private:
  [[nodiscard]] const Route* other_route(Method method) const;

  std::string more_text_;
  std::array<std::unique_ptr<Route>, kMethodCount> by_method_;
  std::unique_ptr<Route> any_method_;
};

}  // namespace tuza::http
