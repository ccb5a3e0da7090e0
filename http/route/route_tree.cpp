#include <tuza/http/route/route_tree.h>

#include <tuza/http/route/conflict.h>
#include <tuza/http/wire/chars.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <stdexcept>
#include <utility>

namespace tuza::http {

namespace {

std::string decoded(std::string_view segment) {
  std::string text;
  append_unescaped(text, segment);
  return text;
}

// The search for one request: depth first, the more specific branch first, with backtracking.
class Search {
 public:
  // `only_with_slash`: looks for a pattern that ends in a slash behind the path, and takes nothing of the path as a rest.
  // `encoded`: a percent sign is in the path.
  Search(const SegmentTable& texts, ExchangeBuffers& buffers, Method method, bool encoded,
         bool only_with_slash)
      : texts_(texts),
        buffers_(buffers),
        method_(method),
        encoded_(encoded),
        only_with_slash_(only_with_slash) {}

  // `rest` is the remaining path: empty, or beginning with the slash before the next segment. The last branch to be tried
  // at a node needs no way back, and so no recursion.
  const Route* find(const RouteNode& from, std::string_view rest, std::size_t values) {
    const RouteNode* node = &from;
    for (;;) {
      if (rest.empty()) return only_with_slash_ ? behind_slash(*node, values) : accept(*node, values);
      if (rest.size() == 1 && !only_with_slash_) return behind_slash(*node, values);
      const SegmentText segment = SegmentText::first_of({rest.data() + 1, rest.size() - 1});
      const std::size_t size = segment.text.size();
      const std::string_view behind(rest.data() + 1 + size, rest.size() - 1 - size);
      const RouteNode* const text = text_child(*node, segment);
      const RouteNode* const name = size > 0 ? node->name.get() : nullptr;
      const bool may_take_rest = node->rest != nullptr && !only_with_slash_;
      if (text != nullptr) {
        if (name == nullptr && !may_take_rest) {
          node = text;
          rest = behind;
          continue;
        }
        if (const Route* route = find(*text, behind, values)) return route;
      }
      if (name != nullptr) {
        values_[values] = {segment.text.data(), size};
        if (!may_take_rest) {
          node = name;
          rest = behind;
          ++values;
          continue;
        }
        if (const Route* route = find(*name, behind, values + 1)) return route;
      }
      return may_take_rest ? take_rest(*node, rest, values) : nullptr;
    }
  }

  [[nodiscard]] unsigned allowed() const { return allowed_; }
  // False: a part of the path was taken as the rest.
  [[nodiscard]] bool exact() const { return exact_; }

 private:
  const Route* behind_slash(const RouteNode& node, std::size_t values) {
    if (node.end != nullptr) {
      if (const Route* route = accept(*node.end, values)) return route;
    }
    values_[values] = {nullptr, 0};
    return node.rest == nullptr ? nullptr : accept(*node.rest, values + 1);
  }

  const Route* take_rest(const RouteNode& node, std::string_view rest, std::size_t values) {
    values_[values] = {rest.data() + 1, rest.size() - 1};
    const Route* const route = accept(*node.rest, values + 1);
    exact_ = route == nullptr;
    return route;
  }

  [[nodiscard]] const RouteNode* text_child(const RouteNode& node, const SegmentText& segment) const {
    if (!node.has_texts() || segment.text.empty()) return nullptr;
    if (!encoded_) [[likely]]
      return texts_.find(node, segment);
    return texts_.find(node, SegmentText(decoded(segment.text)));
  }

  const Route* accept(const RouteNode& node, std::size_t values) {
    const Route* route = node.route(method_);
    if (route == nullptr) {
      node.add_allowed(allowed_);
      return nullptr;
    }
    if (only_with_slash_) return route;
    buffers_.path_values.clear();
    for (std::size_t i = 0; i < values && i < route->name_count; ++i) {
      if (route->names[i].size == 0) continue;
      buffers_.path_values.push_back({route->name(i), {values_[i].data, values_[i].size}});
    }
    return route;
  }

  // A view that is not initialized: most are never used.
  struct Value {
    const char* data;
    std::size_t size;
  };

  const SegmentTable& texts_;
  ExchangeBuffers& buffers_;
  const Method method_;
  const bool encoded_;
  const bool only_with_slash_;
  bool exact_ = true;
  unsigned allowed_ = 0;  // one bit per method that would have found a handler
  std::array<Value, ExchangeBuffers::kPathValuesMax + 1> values_;
};

std::string name_of_host(std::string_view host_and_port) {
  const std::size_t in_brackets = host_and_port.starts_with('[') ? host_and_port.find(']') : 0;
  std::string name(host_and_port.substr(0, host_and_port.find(':', in_brackets)));
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return name;
}

// See RouteTree::methods().
unsigned methods_of(std::optional<Method> method) {
  const auto bit = [](Method one) { return 1u << static_cast<int>(one); };
  if (!method) return ((1u << kMethodCount) - 1) & ~bit(Method::kConnect) & ~bit(Method::kTrace);
  if (*method == Method::kConnect) return 0;
  return bit(*method) | (*method == Method::kGet ? bit(Method::kHead) : 0);
}

std::string place(const std::source_location& where) {
  return std::string(where.file_name()) + ":" + std::to_string(where.line());
}

}  // namespace

RouteTree::RouteTree() = default;
RouteTree::RouteTree(RouteTree&&) noexcept = default;
RouteTree& RouteTree::operator=(RouteTree&&) noexcept = default;
RouteTree::~RouteTree() = default;

void RouteTree::add(std::string_view text, Handler handler, const std::source_location& where) {
  Pattern pattern = Pattern::parse(text);
  const std::string quoted = "pattern \"" + std::string(text) + "\"";
  if (!handler) throw std::invalid_argument(quoted + ": no handler");
  std::unique_ptr<RouteNode>& root = pattern.host.empty() ? all_hosts_ : hosts_[pattern.host];
  if (root == nullptr) root = std::make_unique<RouteNode>();
  if (const Route* other = find_conflict(texts_, *root, pattern)) {
    throw std::invalid_argument(quoted + " (" + place(where) + ") conflicts with \"" + other->text + "\" (" +
                                place(other->where) +
                                "): some request matches both, and neither is more specific");
  }
  Route route;
  route.text = text;
  route.handler = std::move(handler);
  route.where = where;
  RouteNode* node = root.get();
  std::size_t brace = 0;  // of the next name
  for (const Pattern::Segment& segment : pattern.segments) {
    node = &child(*node, segment);
    if (segment.kind != Pattern::Kind::kName && segment.kind != Pattern::Kind::kRest) continue;
    Route::Name& name = route.names[route.name_count++];
    if (segment.text.empty()) continue;
    brace = text.find('{', brace) + 1;
    name = {static_cast<std::uint16_t>(brace), static_cast<std::uint16_t>(segment.text.size())};
  }
  node->add(pattern.method, std::move(route));
  methods_ |= methods_of(pattern.method);
}

// Made if it does not exist.
RouteNode& RouteTree::child(RouteNode& node, const Pattern::Segment& segment) {
  if (segment.kind == Pattern::Kind::kText) {
    const SegmentText text(segment.text);
    if (RouteNode* const same = texts_.find(node, text)) return *same;
    RouteNode& made = node.add_text(text);
    texts_.add(made);
    return made;
  }
  std::unique_ptr<RouteNode>& made = segment.kind == Pattern::Kind::kName  ? node.name
                                     : segment.kind == Pattern::Kind::kEnd ? node.end
                                                                           : node.rest;
  if (made == nullptr) made = std::make_unique<RouteNode>(&node);
  return *made;
}

const RouteNode* RouteTree::root_of(std::string_view host_and_port) const {
  const auto root = hosts_.find(name_of_host(host_and_port));
  return root == hosts_.end() ? nullptr : root->second.get();
}

RouteTree::Found RouteTree::find(Method method, std::string_view host, std::string_view path,
                                 ExchangeBuffers& buffers) const {
  // A pattern with a host precedes one without.
  const std::array<const RouteNode*, 2> roots{hosts_.empty() ? nullptr : root_of(host), all_hosts_.get()};
  const bool encoded = path.find('%') != path.npos;
  Found result;
  const RouteNode* found_in = nullptr;
  for (const RouteNode* root : roots) {
    if (root == nullptr) continue;
    Search search(texts_, buffers, method, encoded, false);
    if (const Route* const route = search.find(*root, path, 0)) {
      result.route = route;
      if (search.exact()) return result;
      found_in = root;
      break;
    }
    result.allowed |= search.allowed();
  }
  if (path.ends_with('/')) return result;
  // Of "/tree" and "/tree/", only the second may be registered. Without a host it stands behind all patterns of the host.
  for (const RouteNode* root : roots) {
    if (root == nullptr) continue;
    Search search(texts_, buffers, method, encoded, true);
    result.slash_is_missing = search.find(*root, path, 0) != nullptr;
    if (result.slash_is_missing || root == found_in) break;
    if (result.route == nullptr) result.allowed_with_slash |= search.allowed();
  }
  return result;
}

}  // namespace tuza::http
