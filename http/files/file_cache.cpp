#include <tuza/http/files/file_cache.h>
#include <tuza/netpoll/files/stat_times.h>

#include <sys/stat.h>
#include <tuza/sched/detail/lock_guard.h>
#include <tuza/sched/per_p.h>
#include <tuza/sched/rt/enter.h>

#include <algorithm>
#include <functional>
#include <thread>

namespace tuza::http {
namespace {

constexpr std::size_t kSlotsMax = 32;
constexpr std::size_t kLineBytes = 64;
// What a node of the table, one of the list, and malloc itself need.
constexpr std::size_t kNodesBytes = 192;

std::size_t slots_for_this_machine() {
  return std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, kSlotsMax);
}

std::int64_t ns_of(const struct timespec& time) { return time_of(time).time_since_epoch().count(); }

}  // namespace

FileVersion version_of(const struct stat& info) {
  return {.device = static_cast<std::uint64_t>(info.st_dev),
          .inode = info.st_ino,
          .size = static_cast<std::uint64_t>(info.st_size),
          .modified_ns = ns_of(tuza::detail::modified_at(info)),
          .changed_ns = ns_of(tuza::detail::changed_at(info))};
}

// A processor's share of the lock that readers take.
struct alignas(kLineBytes) FileCache::Slot {
  rt::SpinLock lock;
};

struct FileCache::Entry {
  struct alignas(kLineBytes) Counter {
    std::atomic<std::uint32_t> pins{0};
  };

  Entry(std::unique_ptr<CachedFile> from, std::size_t slots)
      : file(std::move(from)),
        counters(std::make_unique<Counter[]>(slots)),
        bytes(sizeof(Entry) + sizeof(CachedFile) + file->path.capacity() + file->content.capacity() +
              file->fields.capacity() + file->representation.validators.etag.capacity() +
              slots * sizeof(Counter) + kNodesBytes) {}

  const std::unique_ptr<CachedFile> file;
  const std::unique_ptr<Counter[]> counters;
  const std::size_t bytes;
  std::list<Entry*>::iterator place;  // in clock_, guarded by changing_
  bool chosen = false;                // to be unlinked, guarded by changing_
  std::atomic<bool> used{true};       // since the hand's last visit; relaxed: only a hint
};

FileCache::FileCache(const Limits& limits)
    : limits_(limits), slot_count_(slots_for_this_machine()), slots_(std::make_unique<Slot[]>(slot_count_)) {
  if (enabled()) table_.reserve(limits_.entries_max);  // linking an entry allocates nothing
}

FileCache::~FileCache() {
  for (const auto& [key, entry] : table_) delete entry;
  for (Entry* entry : dead_) delete entry;
}

CachedFile* FileCache::Pin::operator->() const { return entry_->file.get(); }

FileCache::Pin::~Pin() {
  if (entry_ == nullptr) return;
  // Release: pairs with the acquire of is_pinned(). The entry may be freed from here on.
  entry_->counters[slot_].pins.fetch_sub(1, std::memory_order_release);
}

std::size_t FileCache::own_slot() const { return tuza::detail::current_p() % slot_count_; }

FileCache::Pin FileCache::find(std::string_view path) {
  if (!enabled()) return {};
  const Key key = key_of(path);
  const rt::Enter not_suspended;
  const std::size_t slot = own_slot();
  const LockGuard lock(slots_[slot].lock);
  const auto found = table_.find(key);
  if (found == table_.end()) return {};
  Entry* const entry = found->second;
  entry->counters[slot].pins.fetch_add(1, std::memory_order_relaxed);
  // Written only when it changes: processors share the line.
  if (!entry->used.load(std::memory_order_relaxed)) entry->used.store(true, std::memory_order_relaxed);
  return {entry, slot};
}

FileCache::Pin FileCache::insert(std::unique_ptr<CachedFile> file) {
  auto made = std::make_unique<Entry>(std::move(file), slot_count_);
  Entry* const entry = made.get();
  const Key key = key_of(entry->file->path);
  const std::size_t slot = own_slot();
  std::vector<Entry*> out;
  const LockGuard lock(changing_);
  reap();
  if (!enabled() || !make_room(entry->bytes, key, out)) return {};
  exchange(out, {});
  bury(out);
  // What was chosen may have been pinned in the meantime.
  if (bytes_ + entry->bytes > limits_.bytes_max) return {};
  Table prepared;
  prepared.emplace(key, entry);
  entry->place = clock_.insert(clock_.end(), entry);
  entry->counters[slot].pins.store(1, std::memory_order_relaxed);
  bytes_ += entry->bytes;
  exchange({}, prepared.extract(prepared.begin()));
  return {made.release(), slot};
}

void FileCache::remove(std::string_view path) {
  if (!enabled()) return;
  const LockGuard lock(changing_);
  reap();
  // Only changes of the table exclude each other here: readers change nothing.
  const auto found = table_.find(key_of(path));
  if (found == table_.end()) return;
  const std::vector<Entry*> out{found->second};
  exchange(out, {});
  bury(out);
}

// Unlinked entries get no new pins: each of their counters only falls.
bool FileCache::is_pinned(const Entry& entry) const {
  return std::any_of(
      entry.counters.get(), entry.counters.get() + slot_count_,
      [](const Entry::Counter& counter) { return counter.pins.load(std::memory_order_acquire) != 0; });
}

FileCache::Entry* FileCache::advance_hand() {
  clock_.splice(clock_.end(), clock_, clock_.begin());
  return clock_.back();
}

// Chooses what must go: the entry of that path, and others until `bytes` fit. False: they never will.
bool FileCache::make_room(std::size_t bytes, const Key& replaced, std::vector<Entry*>& out) {
  if (dead_bytes_ + bytes > limits_.bytes_max) return false;
  std::size_t left = bytes_, count = clock_.size();
  const auto choose = [&](Entry* entry) {
    entry->chosen = true;
    out.push_back(entry);
    // What is pinned stays in memory for a while.
    if (!is_pinned(*entry)) left -= entry->bytes;
    --count;
  };
  const auto fits = [&] { return left + bytes <= limits_.bytes_max && count < limits_.entries_max; };
  if (const auto old = table_.find(replaced); old != table_.end()) choose(old->second);
  // Two rounds at most: the first takes the marks away.
  for (std::size_t visits = 2 * clock_.size(); visits > 0 && !fits(); --visits) {
    Entry* const entry = advance_hand();
    if (entry->chosen || entry->used.exchange(false, std::memory_order_relaxed) || is_pinned(*entry))
      continue;
    choose(entry);
  }
  if (fits()) return true;
  for (Entry* entry : out) entry->chosen = false;
  return false;
}

// The only place that changes the table. Nothing is allocated or freed here, since all readers wait.
// The analysis does not follow locks in a loop.
void FileCache::exchange(const std::vector<Entry*>& out, Table::node_type in) TUZA_NO_THREAD_SAFETY_ANALYSIS {
  std::vector<Table::node_type> nodes;
  nodes.reserve(out.size());
  const rt::Enter not_suspended;
  for (std::size_t i = 0; i < slot_count_; ++i) slots_[i].lock.lock();
  for (const Entry* entry : out) nodes.push_back(table_.extract(key_of(entry->file->path)));
  if (!in.empty()) table_.insert(std::move(in));
  for (std::size_t i = slot_count_; i > 0; --i) slots_[i - 1].lock.unlock();
}

void FileCache::bury(const std::vector<Entry*>& out) {
  for (Entry* entry : out) {
    dead_.splice(dead_.end(), clock_, entry->place);
    dead_bytes_ += entry->bytes;
  }
  reap();
}

void FileCache::reap() {
  for (auto at = dead_.begin(); at != dead_.end();) {
    Entry* const entry = *at;
    if (is_pinned(*entry)) {
      ++at;
      continue;
    }
    bytes_ -= entry->bytes;
    dead_bytes_ -= entry->bytes;
    delete entry;
    at = dead_.erase(at);
  }
}

std::size_t FileCache::bytes() {
  const LockGuard lock(changing_);
  reap();
  return bytes_;
}
std::size_t FileCache::entries() {
  const LockGuard lock(changing_);
  return clock_.size();
}

}  // namespace tuza::http
