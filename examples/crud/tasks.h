// The tasks of all users, in memory. Thread-safe; operations park for the lock only.
#pragma once

#include <tuza/sched/sync/mutex.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace crud {

struct Task {
  std::int64_t id = 0;
  std::string title;
  bool done = false;
};

class Tasks {
 public:
  [[nodiscard]] std::vector<Task> list(const std::string& user) const {
    const std::scoped_lock lock(mutex_);
    std::vector<Task> found;
    if (const auto mine = tasks_.find(user); mine != tasks_.end()) {
      for (const auto& [id, task] : mine->second) found.push_back(task);
    }
    return found;
  }

  Task add(const std::string& user, std::string title) {
    const std::scoped_lock lock(mutex_);
    Task task{.id = ++last_id_, .title = std::move(title), .done = false};
    return tasks_[user][task.id] = task;
  }

  [[nodiscard]] std::optional<Task> get(const std::string& user, std::int64_t id) const {
    const std::scoped_lock lock(mutex_);
    const auto mine = tasks_.find(user);
    if (mine == tasks_.end()) return std::nullopt;
    const auto task = mine->second.find(id);
    return task == mine->second.end() ? std::nullopt : std::optional(task->second);
  }

  // nullopt if there is no such task.
  std::optional<Task> replace(const std::string& user, Task task) {
    const std::scoped_lock lock(mutex_);
    const auto mine = tasks_.find(user);
    if (mine == tasks_.end()) return std::nullopt;
    const auto found = mine->second.find(task.id);
    if (found == mine->second.end()) return std::nullopt;
    return found->second = std::move(task);
  }

  bool remove(const std::string& user, std::int64_t id) {
    const std::scoped_lock lock(mutex_);
    const auto mine = tasks_.find(user);
    return mine != tasks_.end() && mine->second.erase(id) > 0;
  }

 private:
  mutable tuza::Mutex mutex_;
  std::map<std::string, std::map<std::int64_t, Task>> tasks_;  // guarded by mutex_
  std::int64_t last_id_ = 0;                                   // guarded by mutex_
};

}  // namespace crud
