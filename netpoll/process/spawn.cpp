#include <tuza/netpoll/process/spawn.h>

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <tuza/netpoll/process/own_fd.h>
#include <tuza/netpoll/process/spawn_actions.h>
#include <tuza/sched/arch/calls.h>
#include <tuza/sched/blocking.h>
#include <tuza/sched/rt/base/fork.h>
#include <tuza/sched/rt/base/kernel_slice.h>
#include <tuza/sched/rt/base/thread_limit.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

// Not every system declares it.
extern "C" char** environ;  // NOLINT(readability-redundant-declaration)

namespace tuza::detail {
namespace {

// Calls return an errno, or 0. The first error is kept: all of them are ENOMEM or EBADF.
class SpawnAttributes {
 public:
  explicit SpawnAttributes(bool own_group) {
    keep(posix_spawnattr_init(&attributes_));
    keep(posix_spawn_file_actions_init(&actions_));
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    keep(posix_spawnattr_setsigmask(&attributes_, &none));
    keep(posix_spawnattr_setsigdefault(&attributes_, &all));
    keep(posix_spawnattr_setpgroup(&attributes_, 0));  // the child's number
    const int flags =
        POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | (own_group ? POSIX_SPAWN_SETPGROUP : 0);
    keep(posix_spawnattr_setflags(&attributes_, static_cast<short>(flags)));
  }
  SpawnAttributes(const SpawnAttributes&) = delete;
  SpawnAttributes& operator=(const SpawnAttributes&) = delete;
  ~SpawnAttributes() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }

  void change_folder(int fd) { keep(posix_spawn_file_actions_addfchdir_np(&actions_, fd)); }
  // `fds`: above 2, or one of the constants. Whatever else is open is closed, marked O_CLOEXEC or not.
  void set_fds(const ChildFds& fds) {
    for (int number = 0; number < 3; ++number) {
      const int fd = fds[static_cast<std::size_t>(number)];
      if (fd == kFdNull) {
        keep(posix_spawn_file_actions_addopen(&actions_, number, "/dev/null", O_RDWR, 0));
      } else if (fd != kFdInherited) {
        keep(posix_spawn_file_actions_adddup2(&actions_, fd == kFdOutput ? 1 : fd, number));
      }
    }
    keep(close_from(actions_, 3));
  }

  int spawn(pid_t& child, const char* program, char* const* arguments, char* const* environment) {
    if (error_ != 0) return error_;
    return posix_spawnp(&child, program, &actions_, &attributes_, arguments, environment);
  }

 private:
  void keep(int error) {
    if (error_ == 0) error_ = error;
  }

  posix_spawnattr_t attributes_{};
  posix_spawn_file_actions_t actions_{};
  int error_ = 0;
};

bool has_zero_byte(const std::string& text) { return text.find('\0') != std::string::npos; }

std::vector<char*> pointers_to(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (const std::string& one : strings) pointers.push_back(const_cast<char*>(one.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// The environment of the child, if it is not ours.
std::vector<std::string> environment_of(const ProcessOptions& options) {
  std::vector<std::string> all;
  if (options.environment) {
    all = *options.environment;
  } else {
    for (char** one = environ; one != nullptr && *one != nullptr; ++one) all.emplace_back(*one);
  }
  for (const std::string& added : options.more_environment) {
    const std::string_view name = std::string_view(added).substr(0, added.find('='));
    std::erase_if(all, [name](const std::string& old) {
      return std::string_view(old).substr(0, old.find('=')) == name;
    });
    all.push_back(added);
  }
  return all;
}

// An open descriptor for the working folder that may be entered, or an errno.
Result<OwnFd> open_folder(const std::string& folder, const std::string& program) {
  const std::string inside = folder + "/.";  // asks for the permission to enter it
  const long fd = sys::openat(AT_FDCWD, inside.c_str(), sys::kOpenToEnter | O_DIRECTORY | O_CLOEXEC, 0);
  if (fd >= 0) return OwnFd(static_cast<int>(fd));
  return std::unexpected(Error::from_errno(static_cast<int>(-fd), "start", program + " in " + folder));
}

// A descriptor below 3 would be overwritten by the child's own, so another number takes its place.
Result<OwnFd> move_up(int& fd, const std::string& program) {
  if (fd < 0 || fd > 2) return OwnFd();
  const long above = sys::fcntl(fd, F_DUPFD_CLOEXEC, 3);
  if (above < 0) return std::unexpected(Error::from_errno(static_cast<int>(-above), "start", program));
  fd = static_cast<int>(above);
  return OwnFd(fd);
}

Error refused(const std::string& program, int error) {
  if (error == EAGAIN) return rt::thread_refused("a process for " + program, error);
  return Error::from_errno(error, "start", program);
}

}  // namespace

Result<pid_t> spawn(const std::vector<std::string>& command, const ProcessOptions& options,
                    const ChildFds& fds) {
  const std::string program = command.empty() ? "" : command.front();
  const bool own_environment = options.environment || !options.more_environment.empty();
  const std::vector<std::string> variables =
      own_environment ? environment_of(options) : std::vector<std::string>();
  if (command.empty() || std::ranges::any_of(command, has_zero_byte) || has_zero_byte(options.folder) ||
      std::ranges::any_of(variables, has_zero_byte)) {
    return std::unexpected(Error::from_errno(EINVAL, "start", program.substr(0, program.find('\0'))));
  }
  SpawnAttributes attributes(options.own_group);
  const BlockingCall call;
  OwnFd folder;
  if (!options.folder.empty()) {
    Result<OwnFd> opened = open_folder(options.folder, program);
    if (!opened) return std::unexpected(opened.error());
    folder = std::move(*opened);
    attributes.change_folder(folder.get());
  }
  ChildFds above = fds;
  std::array<OwnFd, 3> moved;
  for (std::size_t i = 0; i < above.size(); ++i) {
    Result<OwnFd> one = move_up(above[i], program);
    if (!one) return std::unexpected(one.error());
    moved[i] = std::move(*one);
  }
  attributes.set_fds(above);
  const std::vector<char*> arguments = pointers_to(command);
  const std::vector<char*> environment = pointers_to(variables);
  rt::keep_thread_of_child();
  pid_t child = -1;
  const int error = attributes.spawn(child, program.c_str(), arguments.data(),
                                     own_environment ? environment.data() : environ);
  if (error != 0) return std::unexpected(refused(program, error));
  rt::hint_kernel_slice(child, 0);  // ours is not for others: back to the kernel's own
  return child;
}

}  // namespace tuza::detail
