#include <tuza/http/files/served_folder.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <tuza/netpoll/files/file_calls.h>
#include <tuza/sched/detail/coarse_clock.h>
#include <tuza/sched/detail/lock_guard.h>
#include <tuza/sched/per_p.h>
#include <tuza/sched/rt/enter.h>

#include <filesystem>
#include <system_error>
#include <utility>

namespace tuza::http {
namespace {

using tuza::detail::blocking_syscall;

std::string absolute(std::string_view path) {
  std::error_code failed;
  const std::string whole = std::filesystem::absolute(path, failed).string();
  return failed ? std::string(path) : whole;
}

}  // namespace

ServedFolder::ServedFolder(std::string_view path, const FileCache::Limits& limits, FileRules rules,
                           std::chrono::nanoseconds look_every)
    : path_(absolute(path)), limits_(limits), rules_(std::move(rules)), look_every_(look_every) {
  const long fd = open_folder(path_);
  if (fd < 0) {
    throw std::system_error(static_cast<int>(-fd), std::system_category(), "open " + std::string(path));
  }
  OpenFile folder(static_cast<int>(fd));
  struct stat info{};
  (void)folder.stat(
      info);  // does not fail for an open folder; if it did, the first look would find another one
  looked_at_ns_.store(coarse_now_ns(), std::memory_order_relaxed);
  serve(std::move(folder), info);
}
ServedFolder::~ServedFolder() = default;

std::shared_ptr<FileStore> ServedFolder::files() {
  const std::int64_t now_ns = coarse_now_ns();
  if (now_ns - looked_at_ns_.load(std::memory_order_relaxed) >= look_every_.count()) look(now_ns);
  return current();
}

bool ServedFolder::still_names(const FileStore& store) {
  look(coarse_now_ns());
  return current().get() == &store;
}

std::shared_ptr<FileStore> ServedFolder::current() {
  const rt::Enter not_suspended;
  Slot& slot = slots_[tuza::detail::current_p() % kSlots];
  const LockGuard lock(slot.lock);
  return slot.store;
}

void ServedFolder::look(std::int64_t now_ns) {
  looked_at_ns_.store(now_ns, std::memory_order_relaxed);
  const auto is_served = [this](const struct stat& info) {
    return info.st_dev == device_.load(std::memory_order_relaxed) &&
           info.st_ino == inode_.load(std::memory_order_relaxed);
  };
  struct stat info{};
  const long failed = blocking_syscall(sys::fstatat, AT_FDCWD, path_.c_str(), &info, 0);
  if (failed < 0 || !S_ISDIR(info.st_mode) || is_served(info)) return;
  const LockGuard lock(changing_);
  const long fd = open_folder(path_);
  if (fd < 0) return;
  OpenFile folder(static_cast<int>(fd));
  // The folder that is served is held open, so no other one has its number.
  if (folder.stat(info) < 0 || is_served(info)) return;
  serve(std::move(folder), info);
}

// The constructor, or with changing_ held.
void ServedFolder::serve(OpenFile folder, const struct stat& info) {
  const auto store = std::make_shared<FileStore>(std::move(folder), limits_, rules_);
  std::array<std::shared_ptr<FileStore>, kSlots> pointers;
  // Each has a count of its own, and keeps the store through its deleter.
  for (auto& pointer : pointers) pointer = std::shared_ptr<FileStore>(store.get(), [store](FileStore*) {});
  device_.store(info.st_dev, std::memory_order_relaxed);
  inode_.store(info.st_ino, std::memory_order_relaxed);
  for (std::size_t i = 0; i < kSlots; ++i) {
    const rt::Enter not_suspended;
    const LockGuard lock(slots_[i].lock);
    slots_[i].store.swap(pointers[i]);
  }
}

}  // namespace tuza::http
