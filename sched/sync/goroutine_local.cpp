#include <tuza/sched/sync/goroutine_local.h>

#include <tuza/sched/rt/base/check.h>
#include <tuza/sched/rt/g.h>
#include <tuza/sched/rt/park.h>
#include <tuza/sched/sync/detail/destroy_locals.h>

#include <algorithm>
#include <atomic>
#include <string_view>
#include <vector>

namespace tuza::rt {

// Owner: the goroutine. The oldest value comes first.
class LocalTable {
 public:
  struct Entry {
    std::uint64_t id;
    void* value;
    DestroyLocal destroy;
  };
  std::vector<Entry> entries;

  [[nodiscard]] auto find(std::uint64_t id) {
    return std::find_if(entries.begin(), entries.end(), [id](const Entry& entry) { return entry.id == id; });
  }
};

namespace {

G& current() {
  G* const g = current_g();
  if (g == nullptr) fatal("use of a GoroutineLocal on a thread that is not a goroutine");
  return *g;
}

}  // namespace

std::uint64_t new_local_id() {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

void* find_local(std::uint64_t id) {
  LocalTable* const table = current().locals;
  if (table == nullptr) return nullptr;
  const auto at = table->find(id);
  return at == table->entries.end() ? nullptr : at->value;
}

void add_local(std::uint64_t id, void* value, DestroyLocal destroy) {
  G& g = current();
  if (g.locals == nullptr) g.locals = new LocalTable;
  LocalTable& table = *g.locals;
  if (table.find(id) != table.entries.end())
    fatal("the initializer of a GoroutineLocal used the same GoroutineLocal");
  table.entries.push_back({id, value, destroy});
}

void remove_local(std::uint64_t id) {
  LocalTable* const table = current().locals;
  if (table == nullptr) return;
  const auto at = table->find(id);
  if (at == table->entries.end()) return;
  const LocalTable::Entry entry = *at;
  table->entries.erase(at);
  entry.destroy(entry.value);
}

void destroy_locals() noexcept {
  G* const g = current_g();
  if (g == nullptr || g->locals == nullptr) return;
  // One value at a time, from the end: a destructor may look up other values, and make new ones.
  std::vector<LocalTable::Entry>& entries = g->locals->entries;
  while (!entries.empty()) {
    const LocalTable::Entry entry = entries.back();
    entries.pop_back();
    entry.destroy(entry.value);
  }
  delete g->locals;
  g->locals = nullptr;
}

}  // namespace tuza::rt
