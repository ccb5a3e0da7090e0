// Walks the tree along all paths that a new pattern could share with older ones, and notes on the way which of the two is
// narrower. Only what overlaps is visited.
#include <tuza/http/route/conflict.h>

namespace tuza::http {
namespace {

// Which of the two paths matches less at some segment. Both: neither is a part of the other.
struct Narrower {
  bool added = false;
  bool old = false;
};

class PatternWalk {
 public:
  PatternWalk(const SegmentTable& texts, const Pattern& added) : texts_(texts), added_(added) {}

  const Route* below(const RouteNode& node, std::size_t at, Narrower so_far) {
    if (at == added_.segments.size()) return here(node, so_far);
    const Pattern::Segment& segment = added_.segments[at];
    const Route* found = nullptr;
    const auto go_on = [&](const std::unique_ptr<RouteNode>& child, Narrower narrower) {
      if (found == nullptr && child != nullptr) found = below(*child, at + 1, narrower);
    };
    const Narrower added_is{true, so_far.old};
    const Narrower old_is{so_far.added, true};
    using Kind = Pattern::Kind;
    switch (segment.kind) {
      case Kind::kText: {
        const RouteNode* const same = texts_.find(node, SegmentText(segment.text));
        if (same != nullptr) found = below(*same, at + 1, so_far);
        go_on(node.name, added_is);
        break;
      }
      case Kind::kName:
        for (const auto& child : node.texts()) go_on(child, old_is);
        go_on(node.name, so_far);
        break;
      case Kind::kEnd: go_on(node.end, so_far); break;
      case Kind::kRest: return everything_below(node, so_far);
    }
    if (found == nullptr && node.rest != nullptr) found = here(*node.rest, added_is);
    return found;
  }

 private:
  // The new pattern takes the rest of the path.
  const Route* everything_below(const RouteNode& node, Narrower so_far) {
    const Narrower old_is{so_far.added, true};
    for (const auto& child : node.texts()) {
      if (const Route* found = all_of(*child, old_is)) return found;
    }
    for (const auto* child : {&node.name, &node.end}) {
      if (*child == nullptr) continue;
      if (const Route* found = all_of(**child, old_is)) return found;
    }
    return node.rest == nullptr ? nullptr : here(*node.rest, so_far);
  }
  const Route* all_of(const RouteNode& node, Narrower so_far) {
    if (const Route* found = here(node, so_far)) return found;
    for (const auto& child : node.texts()) {
      if (const Route* found = all_of(*child, so_far)) return found;
    }
    for (const auto* child : {&node.name, &node.end, &node.rest}) {
      if (*child == nullptr) continue;
      if (const Route* found = all_of(**child, so_far)) return found;
    }
    return nullptr;
  }

  const Route* here(const RouteNode& node, Narrower so_far) {
    for (int i = 0; i < kMethodCount; ++i) {
      const auto method = static_cast<Method>(i);
      const Route* const old = node.registered(method);
      if (old != nullptr && conflicts(method, so_far)) return old;
    }
    const Route* const old = node.registered(std::nullopt);
    if (old != nullptr && conflicts(std::nullopt, so_far)) return old;
    return nullptr;
  }

  [[nodiscard]] bool conflicts(std::optional<Method> old, Narrower path) const {
    if (path.added != path.old) return false;
    if (!path.added) return added_.method == old;  // the same path: one method, or the narrower one answers
    const auto get_and_head = [](Method get, Method head) {
      return get == Method::kGet && head == Method::kHead;  // a pattern for GET answers HEAD, too
    };
    const std::optional<Method> added = added_.method;
    return !old || !added || old == added || get_and_head(*old, *added) || get_and_head(*added, *old);
  }

  const SegmentTable& texts_;
  const Pattern& added_;
};

}  // namespace

const Route* find_conflict(const SegmentTable& texts, const RouteNode& root, const Pattern& added) {
  return PatternWalk(texts, added).below(root, 0, {});
}

}  // namespace tuza::http
