// A node of the tree of patterns, and what is registered there.
//
// What a search reads is in the first 64 bytes of a node, and for the route in the 64 bytes behind: a large service has
// megabytes of routes, and each cache line that is not in the cache costs as much as the rest of the step.
#pragma once

#include <tuza/http/handler.h>
#include <tuza/http/method.h>
#include <tuza/http/route/segment_text.h>
#include <tuza/http/serve/exchange_buffers.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tuza::http {

struct alignas(64) Route {
  // What a request needs is in one cache line, up to the first name.
  Handler handler;
  std::string_view pattern;  // `text`; set by RouteNode::add(), behind which a route does not move
  struct Name {
    std::uint16_t begin = 0, size = 0;  // in `pattern`; no size: the value is not kept
  };
  std::uint8_t name_count = 0;
  // Of the wildcards, in order; behind them there may be the rest after a slash, which has none.
  std::array<Name, ExchangeBuffers::kPathValuesMax + 1> names{};
  [[nodiscard]] std::string_view name(std::size_t i) const {
    return pattern.substr(names[i].begin, names[i].size);
  }

  std::string text;
  std::source_location where;  // it was registered
};

class alignas(64) RouteNode {
 public:
  // `segment`: empty for wildcards and roots.
  explicit RouteNode(const RouteNode* above = nullptr, const SegmentText& segment = {})
      : parent(above),
        low_(segment.low),
        high_(segment.high),
        text_bytes_(static_cast<std::uint32_t>(segment.text.size())),
        text_(segment.text) {}

  // -- What a search reads.
  const RouteNode* const parent;
  std::unique_ptr<RouteNode> name;  // {name}
  std::unique_ptr<RouteNode> end;   // {$}; a leaf
  std::unique_ptr<RouteNode> rest;  // {name...}; a leaf

  // The route that answers `method`; null: none.
  [[nodiscard]] const Route* route(Method method) const {
    return only_ != nullptr && only_method_ == method ? only_ : other_route(method);
  }
  // So that the first route of this node arrives while the node is read.
  void prefetch_route() const { __builtin_prefetch(&first_); }
  [[nodiscard]] bool has_text(const SegmentText& segment) const {
    if (((segment.low ^ low_) | (segment.high ^ high_)) != 0 || segment.text.size() != text_bytes_)
      return false;
    return text_bytes_ <= SegmentText::kInWords || segment.text == text_;
  }
  // Whether there are any below this node.
  [[nodiscard]] bool has_texts() const { return has_texts_; }

 private:
  const Route* only_ = nullptr;     // a route here that is for one method
  const std::uint64_t low_, high_;  // as of SegmentText
  const std::uint32_t text_bytes_;
  Method only_method_{};
  bool has_texts_ = false;

  Route first_;  // of the routes here, if there is one

 public:
  // -- The rest.
  [[nodiscard]] std::string_view text() const { return text_; }
  // In the order of their registration.
  [[nodiscard]] const std::vector<std::unique_ptr<RouteNode>>& texts() const { return texts_; }
  RouteNode& add_text(const SegmentText& segment);

  // `method`: nullopt for all. There must be no route for the same.
  void add(std::optional<Method> method, Route route);
  // The route that was registered for exactly that; nullopt: for all methods.
  [[nodiscard]] const Route* registered(std::optional<Method> method) const {
    return method ? by_method_[static_cast<std::size_t>(*method)] : any_method_;
  }
  // Adds the methods that it answers, one bit for each.
  void add_allowed(unsigned& methods) const;

 private:
  [[nodiscard]] const Route* other_route(Method method) const;

  std::vector<std::unique_ptr<RouteNode>> texts_;
  const std::string text_;
  std::array<const Route*, kMethodCount> by_method_{};
  const Route* any_method_ = nullptr;
  std::vector<std::unique_ptr<Route>> more_routes_;
};

}  // namespace tuza::http
