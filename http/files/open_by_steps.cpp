// openat2(RESOLVE_BENEATH) in small steps, for where that call does not exist.
//
// Each folder on the way is held open, and each name is opened in the folder before it without following a link. A link is
// read, and its text takes its place in the path. ".." goes back to the folder before, which is held, and so never to where
// a folder has been moved meanwhile: whatever other processes do to the tree, only folders are passed that were reached from
// the first one. As with openat2, a link to an absolute path is refused, also if that lies inside.
#include <tuza/http/files/open_beneath.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <tuza/netpoll/files/file_calls.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <string>
#include <utility>
#include <vector>

namespace tuza::http {
namespace {

using tuza::detail::blocking_syscall;

constexpr int kLinksMax = 40;    // as in the kernel
constexpr int kReplacedMax = 8;  // for a file that becomes something else while it is opened

// To the file that a path names; what is done with it there is for subclasses.
class Walk {
 public:
  Walk(int folder, std::string path) : folder_(folder), rest_(std::move(path)) {}
  virtual ~Walk() = default;

  long go() {
    for (;;) {
      rest_.erase(0, std::min(rest_.find_first_not_of('/'), rest_.size()));
      if (rest_.empty()) return arrive(here(), ".");  // the path ends with a slash or a dot, so in a folder
      const std::string name = rest_.substr(0, rest_.find('/'));
      if (name == "." || name == "..") {
        if (name == ".." && held_.empty()) return -EXDEV;
        if (name == "..") held_.pop_back();
        rest_.erase(0, name.size());
        continue;
      }
      const long result = pass(name);
      if (result != kGoOn) return result;
    }
  }

 private:
  static constexpr long kGoOn = -EINPROGRESS;

  // `name` in `folder` was no link a moment ago.
  virtual long arrive(int folder, const std::string& name) = 0;

  [[nodiscard]] int here() const { return held_.empty() ? folder_ : held_.back().fd(); }

  // The first name of rest_. kGoOn: there is more to pass.
  long pass(const std::string& name) {
    struct stat info{};
    const long error = blocking_syscall(sys::fstatat, here(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW);
    if (error < 0) return error;
    if (S_ISLNK(info.st_mode)) return follow(name);
    if (name.size() == rest_.size()) return again_if_replaced(arrive(here(), name));
    if (!S_ISDIR(info.st_mode)) return -ENOTDIR;
    const long fd = blocking_syscall(sys::openat, here(), name.c_str(),
                                     sys::kOpenToEnter | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    if (fd < 0) return again_if_replaced(fd);
    held_.emplace_back(static_cast<int>(fd));
    rest_.erase(0, name.size());
    return kGoOn;
  }

  // ENOTDIR and EMLINK are what systems say of a link besides ELOOP.
  long again_if_replaced(long result) {
    const bool replaced =
        result == -ELOOP || result == -ENOENT || result == -ENOTDIR || result == -EMLINK || result == -EINVAL;
    return replaced && ++tries_ < kReplacedMax ? kGoOn : result;
  }

  long follow(const std::string& name) {
    if (++links_ > kLinksMax) return -ELOOP;
    std::array<char, PATH_MAX> text;
    const long bytes = blocking_syscall(sys::readlinkat, here(), name.c_str(), text.data(), text.size());
    if (bytes < 0) return again_if_replaced(bytes);
    if (bytes == 0) return -ENOENT;
    if (text[0] == '/') return -EXDEV;
    rest_.replace(0, name.size(), text.data(), static_cast<std::size_t>(bytes));
    return rest_.size() < PATH_MAX ? kGoOn : -ENAMETOOLONG;
  }

  const int folder_;
  std::string rest_;
  std::vector<OpenFile> held_;  // the folders passed, the last one at the back
  int links_ = 0;
  int tries_ = 0;
};

class OpenWalk final : public Walk {
 public:
  OpenWalk(int folder, const std::string& path, int flags) : Walk(folder, path), flags_(flags) {}

 private:
  long arrive(int folder, const std::string& name) override {
    return blocking_syscall(sys::openat, folder, name.c_str(), kOpenBeneathFlags | flags_ | O_NOFOLLOW, 0);
  }
  const int flags_;
};

class StatWalk final : public Walk {
 public:
  StatWalk(int folder, const std::string& path, struct stat& into) : Walk(folder, path), into_(into) {}

 private:
  long arrive(int folder, const std::string& name) override {
    const long error = blocking_syscall(sys::fstatat, folder, name.c_str(), &into_, AT_SYMLINK_NOFOLLOW);
    return error == 0 && S_ISLNK(into_.st_mode) ? -ELOOP : error;
  }
  struct stat& into_;
};

}  // namespace

long open_beneath_by_steps(int folder, const std::string& path, int flags) {
  return OpenWalk(folder, path, flags).go();
}

long stat_beneath_by_steps(int folder, const std::string& path, struct stat& into) {
  return StatWalk(folder, path, into).go();
}

}  // namespace tuza::http
