// A folder with files of all kinds, and a file next to it, for tests of what serves files.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/fsuid.h>
#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>

namespace tuza::http::testing {

namespace fs = std::filesystem;

inline constexpr std::string_view kText = "0123456789abcdefghij";  // contents of a.txt
inline constexpr std::string_view kModified = "Sun, 06 Nov 1994 08:49:37 GMT";

// A directory with files, and a file next to it.
class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "tuza_files_XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) std::abort();
    top_ = name;
    fs::permissions(top_, fs::perms(0755));
    fs::create_directories(root() / "dir/deep");
    fs::create_directories(root() / ".git");
    write(root() / "a.txt", kText);
    write(root() / "empty.css", "");
    write(root() / "dir/index.html", "<p>dir");
    write(root() / "dir/deep/no index", "spaces");
    write(root() / ".git/config", "hidden");
    write(top_ / "secret.txt", "secret");
    fs::create_symlink("a.txt", root() / "inside.txt");
    fs::create_symlink("../secret.txt", root() / "outside.txt");
    fs::create_symlink(top_ / "secret.txt", root() / "absolute.txt");
    fs::create_directory_symlink("..", root() / "up");
    mkfifo((root() / "fifo").c_str(), 0666);
    fs::create_symlink("loop", root() / "loop");
    set_time(root() / "a.txt", 784111777);
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(top_, ignored);
  }
  [[nodiscard]] fs::path root() const { return top_ / "root"; }
  static void write(const fs::path& path, std::string_view text) {
    std::ofstream(path, std::ios::binary) << text;
  }
  static void set_time(const fs::path& path, time_t seconds) {
    const struct timespec times[2] = {{seconds, 0}, {seconds, 0}};
    if (utimensat(AT_FDCWD, path.c_str(), times, 0) != 0) std::abort();
  }

 private:
  fs::path top_;
};

inline std::string ask(std::string_view path, std::string_view fields = "", std::string_view method = "GET") {
  return std::string(method) + " " + std::string(path) + " HTTP/1.1\r\nHost: a\r\n" + std::string(fields) +
         "\r\n";
}

// The process's system calls that read.
inline std::uint64_t reads() {
  std::ifstream io("/proc/self/io");
  for (std::string name; io >> name;) {
    std::uint64_t value = 0;
    io >> value;
    if (name == "syscr:") return value;
  }
  ADD_FAILURE() << "/proc/self/io does not count system calls";
  return 0;
}

// Root may read everything: for the length of a scope, this thread opens files as somebody else.
class WithoutPrivileges {
 public:
  WithoutPrivileges() : before_(setfsuid(kNobody)) {}
  ~WithoutPrivileges() { setfsuid(static_cast<uid_t>(before_)); }
  WithoutPrivileges(const WithoutPrivileges&) = delete;
  WithoutPrivileges& operator=(const WithoutPrivileges&) = delete;

 private:
  static constexpr uid_t kNobody = 65534;
  const int before_;
};

}  // namespace tuza::http::testing
