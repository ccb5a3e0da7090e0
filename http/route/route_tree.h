// The patterns of a router as a tree, and the search for the one that answers a request. <tuza/http/router.h> says
// which patterns match, and which precedes.
//
// Each host has a tree of its own; so do all hosts together. A node is a segment, shared by all patterns with the same
// beginning. All texts are in one hash table (segment_table.h): the number of routes matters for a search only because the
// processor's caches are small.
//
// Thread-compatible: searches are independent of each other.
#pragma once

#include <tuza/http/handler.h>
#include <tuza/http/method.h>
#include <tuza/http/route/pattern.h>
#include <tuza/http/route/route_node.h>
#include <tuza/http/route/segment_table.h>
#include <tuza/http/serve/exchange_buffers.h>

#include <memory>
#include <source_location>
#include <string>
#include <string_view>
#include <unordered_map>

namespace tuza::http {

class RouteTree {
 public:
  RouteTree();
  RouteTree(RouteTree&&) noexcept;
  RouteTree& operator=(RouteTree&&) noexcept;
  ~RouteTree();

  // As Router::handle(). `where` is for the messages of later conflicts.
  void add(std::string_view text, Handler handler, const std::source_location& where);

  struct Found {
    const Route* route = nullptr;     // null: no pattern with this path answers the method
    unsigned allowed = 0;             // without a route: one bit per method that would have found one
    unsigned allowed_with_slash = 0;  // the same, for the path with a slash behind it
    bool slash_is_missing =
        false;  // a pattern answers the path with a slash behind it, and none as exactly without
  };
  // `path` begins with "/"; `host` may have a port. Stores the values of the pattern's wildcards in `buffers`; they are
  // views of `path`.
  Found find(Method method, std::string_view host, std::string_view path, ExchangeBuffers& buffers) const;

  // The methods that some path answers, one bit for each. A pattern without a method counts for those that handlers usually
  // mean by that: not for TRACE, which repeats the client's secrets. Never CONNECT, which has no path.
  [[nodiscard]] unsigned methods() const { return methods_; }

 private:
  RouteNode& child(RouteNode& node, const Pattern::Segment& segment);
  [[nodiscard]] const RouteNode* root_of(std::string_view host_and_port) const;

  std::unique_ptr<RouteNode> all_hosts_ = std::make_unique<RouteNode>();
  std::unordered_map<std::string, std::unique_ptr<RouteNode>> hosts_;
  SegmentTable texts_;  // of all trees
  unsigned methods_ = 0;
};

}  // namespace tuza::http
