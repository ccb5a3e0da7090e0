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
  Search(const SegmentTable& texts, ExchangeBuffers& buffers, Method method, bool only_with_slash)
      : texts_(texts), buffers_(buffers), method_(method), only_with_slash_(only_with_slash) {}

  // `rest` is the remaining path: empty, or beginning with the slash before the next segment.
  const Route* find(const RouteNode& node, std::string_view rest, std::size_t values) {
    if (rest.empty()) return only_with_slash_ ? behind_slash(node, values) : accept(node, values);
    if (rest.size() == 1 && !only_with_slash_) return behind_slash(node, values);
    std::size_t slash = 1;  // segments are short: a loop takes less time than a call of memchr()
    bool encoded = false;
    for (; slash < rest.size() && rest[slash] != '/'; ++slash) encoded = encoded || rest[slash] == '%';
    const std::string_view segment = rest.substr(1, slash - 1);
    const std::string_view behind = rest.substr(slash);
    if (!segment.empty()) {
      if (const RouteNode* child = text_child(node, segment, encoded)) {
        if (const Route* route = find(*child, behind, values)) return route;
      }
      if (node.name != nullptr) {
        values_[values] = {segment.data(), segment.size()};
        if (const Route* route = find(*node.name, behind, values + 1)) return route;
      }
    }
    if (node.rest == nullptr || only_with_slash_) return nullptr;
    values_[values] = {rest.data() + 1, rest.size() - 1};
    const Route* const route = accept(*node.rest, values + 1);
    exact_ = route == nullptr;
    return route;
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

  [[nodiscard]] const RouteNode* text_child(const RouteNode& node, std::string_view segment,
                                            bool encoded) const {
    return encoded ? texts_.find(node, decoded(segment)) : texts_.find(node, segment);
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
    throw std::invalid_argument(quoted + " (" + place(where) + ") conflicts with \"" + other->pattern +
                                "\" (" + place(other->where) +
                                "): some request matches both, and neither is more specific");
  }
  auto route = std::make_unique<Route>();
  route->pattern = text;
  route->handler = std::move(handler);
  route->where = where;
  RouteNode* node = root.get();
  std::size_t brace = 0;  // of the next name
  for (const Pattern::Segment& segment : pattern.segments) {
    node = &child(*node, segment);
    if (segment.kind != Pattern::Kind::kName && segment.kind != Pattern::Kind::kRest) continue;
    Route::Name& name = route->names[route->name_count++];
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
    if (RouteNode* const same = texts_.find(node, segment.text)) return *same;
    RouteNode& made = *node.texts.emplace_back(std::make_unique<RouteNode>(&node, segment.text));
    texts_.add(made, segment.text);
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
  Found result;
  const RouteNode* found_in = nullptr;
  for (const RouteNode* root : roots) {
    if (root == nullptr) continue;
    Search search(texts_, buffers, method, false);
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
    Search search(texts_, buffers, method, true);
    result.slash_is_missing = search.find(*root, path, 0) != nullptr;
    if (result.slash_is_missing || root == found_in) break;
    if (result.route == nullptr) result.allowed_with_slash |= search.allowed();
  }
  return result;
}

}  // namespace tuza::http
