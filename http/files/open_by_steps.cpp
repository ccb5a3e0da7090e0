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

class Walk {
 public:
  Walk(int folder, std::string path, int flags) : folder_(folder), rest_(std::move(path)), flags_(flags) {}

  long open() {
    for (;;) {
      rest_.erase(0, std::min(rest_.find_first_not_of('/'), rest_.size()));
      if (rest_.empty()) return open_here(".");  // the path ends with a slash or a dot, so in a folder
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

  [[nodiscard]] int here() const { return held_.empty() ? folder_ : held_.back().fd(); }
  [[nodiscard]] long open_here(const std::string& name) const {
    return blocking_syscall(sys::openat, here(), name.c_str(), flags_ | O_NOFOLLOW, 0);
  }

  // The first name of rest_. kGoOn: there is more to pass.
  long pass(const std::string& name) {
    const long fd = blocking_syscall(sys::openat, here(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC, 0);
    if (fd < 0) return fd;
    OpenFile found(static_cast<int>(fd));
    struct stat info{};
    if (const long error = found.stat(info); error < 0) return error;
    if (S_ISLNK(info.st_mode)) return follow(found.fd(), name.size());
    if (name.size() < rest_.size()) {
      if (!S_ISDIR(info.st_mode)) return -ENOTDIR;
      held_.push_back(std::move(found));
      rest_.erase(0, name.size());
      return kGoOn;
    }
    if ((flags_ & O_PATH) != 0) return found.release();
    const long opened = open_here(name);
    // It was no link a moment ago: look again.
    const bool replaced = opened == -ELOOP || opened == -ENOENT;
    return replaced && ++tries_ < kReplacedMax ? kGoOn : opened;
  }

  long follow(int link, std::size_t name_bytes) {
    if (++links_ > kLinksMax) return -ELOOP;
    std::array<char, PATH_MAX> text;
    const long bytes = blocking_syscall(sys::readlinkat, link, "", text.data(), text.size());
    if (bytes < 0) return bytes;
    if (bytes == 0) return -ENOENT;
    if (text[0] == '/') return -EXDEV;
    rest_.replace(0, name_bytes, text.data(), static_cast<std::size_t>(bytes));
    return rest_.size() < PATH_MAX ? kGoOn : -ENAMETOOLONG;
  }

  const int folder_;
  std::string rest_;
  const int flags_;
  std::vector<OpenFile> held_;  // the folders passed, the last one at the back
  int links_ = 0;
  int tries_ = 0;
};

}  // namespace

long open_beneath_by_steps(int folder, const std::string& path, int flags) {
  return Walk(folder, path, static_cast<int>(open_beneath_flags(flags))).open();
}

}  // namespace tuza::http
