// The floor: the least that a server can do in an HTTP benchmark, and the baseline for the other servers.
//
// The floor parses nothing. It counts the ends of request heads ("\r\n\r\n") in the bytes of one read, and answers
// with that many copies of one fixed text in one write: two system calls per read, and an epoll_wait shared by all
// connections that were ready. All further work of a real server shows in its ratio to the floor.
//
// There is one thread per CPU that the process may run on. Each thread has its own epoll instance, its own
// SO_REUSEPORT listener and its own connections, so the threads share only the answers, which are constant. The first
// worker is the main thread: with one CPU the process has one thread, for which the kernel looks up descriptors without
// counting references.
//
// With --burn-permille, that share of requests costs 1 ms of CPU, as `/maybe` of examples/hostile does. Requests
// behind such a request wait.
//
// Not for the open network: there are no limits and no timeouts, and a body is treated as part of a head.

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <tuza/examples/hostile/work.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

constexpr std::string_view kAnswer =
    "HTTP/1.1 200 OK\r\n"
    "Server: floor\r\n"
    "Date: Thu, 01 Jan 1970 00:00:00 GMT\r\n"
    "Content-Type: text/plain\r\n"
    "Content-Length: 13\r\n"
    "\r\n"
    "Hello, World!";
constexpr std::string_view kHeadEnd = "\r\n\r\n";
constexpr std::size_t kReadBytes = 8192;
// The maximum number of requests that one read can complete: the shortest "request" is the end of a head alone, and the
// first request may have begun in an earlier read.
constexpr std::size_t kAnswersMax = kReadBytes / kHeadEnd.size() + 1;
constexpr int kEventsMax = 512;
constexpr const char* kUsage =
    "usage: floor [--listen HOST:PORT] [--threads N] [--burn-permille N]\n"
    "  --listen HOST:PORT  where to listen (default 127.0.0.1:8080; [::1]:8080 for IPv6)\n"
    "  --threads N         worker threads (default: one per CPU the process may run on)\n"
    "  --burn-permille N   so many of 1,000 requests burn 1 ms of CPU (default: none)\n";

[[noreturn]] void fail(const std::string& what, int error) {
  std::fprintf(stderr, "floor: %s: %s\n", what.c_str(), std::strerror(error));
  std::_Exit(1);
}

[[noreturn]] void fail_usage(const std::string& what) {
  std::fprintf(stderr, "floor: %s\n%s", what.c_str(), kUsage);
  std::_Exit(2);
}

// Returns how many request heads end in `bytes`. `matched` is the length of the prefix of kHeadEnd that the
// connection's bytes so far end with, so that an end split over several reads is found.
std::uint32_t count_head_ends(std::string_view bytes, std::uint32_t& matched) {
  std::uint32_t ends = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (matched == 0) {
      i = bytes.find('\r', i);  // memchr: examines many bytes at a time
      if (i == std::string_view::npos) return ends;
    }
    if (bytes[i] == kHeadEnd[matched]) {
      ++matched;
    } else {
      matched = bytes[i] == '\r' ? 1 : 0;
    }
    if (matched == kHeadEnd.size()) {
      ++ends;
      matched = 0;
    }
  }
  return ends;
}

// Constant after construction; thread-safe.
const std::string& answers() {
  static const std::string text = [] {
    std::string copies;
    copies.reserve(kAnswersMax * kAnswer.size());
    for (std::size_t i = 0; i < kAnswersMax; ++i) copies += kAnswer;
    return copies;
  }();
  return text;
}

// One thread's part of the server. Only its own thread uses it.
class Worker {
 public:
  // Owns `listener`, a non-blocking listening socket.
  Worker(int listener, unsigned burn_permille)
      : listener_(listener), burn_permille_(burn_permille), epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
    if (epoll_ < 0) fail("epoll_create1", errno);
    control(EPOLL_CTL_ADD, listener_, EPOLLIN);
  }

  // Serves until the process ends. Blocks the thread in epoll_wait.
  [[noreturn]] void run() {
    std::array<epoll_event, kEventsMax> events;
    for (;;) {
      const int ready = ::epoll_wait(epoll_, events.data(), kEventsMax, -1);
      if (ready < 0 && errno != EINTR) fail("epoll_wait", errno);
      for (int i = 0; i < ready; ++i) {
        const int fd = events[static_cast<std::size_t>(i)].data.fd;
        if (fd == listener_) {
          accept_all();
        } else if (connections_[static_cast<std::size_t>(fd)].owed_bytes > 0) {
          resume_send(fd);
        } else {
          receive(fd);
        }
      }
    }
  }

 private:
  struct Connection {
    std::uint32_t matched = 0;     // see count_head_ends
    std::uint32_t owed_bytes = 0;  // of answers; while nonzero, registered for EPOLLOUT, not EPOLLIN
  };

  void control(int operation, int fd, std::uint32_t interest) {
    epoll_event event{};
    event.events = interest;
    event.data.fd = fd;
    if (::epoll_ctl(epoll_, operation, fd, &event) < 0) fail("epoll_ctl", errno);
  }

  void accept_all() {
    for (;;) {
      const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (fd < 0) {
        if (errno == EAGAIN) return;
        if (errno == EINTR || errno == ECONNABORTED) continue;
        // For example, no descriptor is left: measurements from here on would mean nothing.
        fail("accept4", errno);
      }
      const int on = 1;
      ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      const auto index = static_cast<std::size_t>(fd);
      if (index >= connections_.size()) connections_.resize(index + 1);
      connections_[index] = {};
      control(EPOLL_CTL_ADD, fd, EPOLLIN);
    }
  }

  // One read per event. Level-triggered epoll reports again the bytes that did not fit into the buffer.
  void receive(int fd) {
    Connection& connection = connections_[static_cast<std::size_t>(fd)];
    const ssize_t n = ::recv(fd, input_.data(), input_.size(), 0);
    if (n <= 0) {
      if (n == 0 || (errno != EAGAIN && errno != EINTR)) ::close(fd);
      return;
    }
    const std::string_view bytes(input_.data(), static_cast<std::size_t>(n));
    const std::uint32_t ends = count_head_ends(bytes, connection.matched);
    if (ends == 0) return;
    if (burn_permille_ > 0) {
      for (std::uint32_t i = 0; i < ends; ++i) hostile::maybe_burn(burn_permille_);
    }
    connection.owed_bytes = ends * static_cast<std::uint32_t>(kAnswer.size());
    if (send_owed(fd, connection) && connection.owed_bytes > 0) control(EPOLL_CTL_MOD, fd, EPOLLOUT);
  }

  // The client reads more slowly than it sends requests. Nothing more is read from it until the rest has been sent.
  void resume_send(int fd) {
    Connection& connection = connections_[static_cast<std::size_t>(fd)];
    if (send_owed(fd, connection) && connection.owed_bytes == 0) control(EPOLL_CTL_MOD, fd, EPOLLIN);
  }

  // One write. Returns false if the connection is gone; send_owed() has then closed it. The answers are one text
  // repeated, so the number of owed bytes is enough to know where to continue.
  bool send_owed(int fd, Connection& connection) {
    const std::size_t begun = connection.owed_bytes % kAnswer.size();
    const std::size_t offset = begun == 0 ? 0 : kAnswer.size() - begun;
    const ssize_t n = ::send(fd, answers().data() + offset, connection.owed_bytes, MSG_NOSIGNAL);
    if (n >= 0) {
      connection.owed_bytes -= static_cast<std::uint32_t>(n);
    } else if (errno != EAGAIN && errno != EINTR) {
      ::close(fd);
      return false;
    }
    return true;
  }

  const int listener_;
  const unsigned burn_permille_;
  const int epoll_;
  std::vector<Connection> connections_;  // by descriptor
  std::array<char, kReadBytes> input_;
};

struct Options {
  std::string host = "127.0.0.1";
  std::string port = "8080";
  unsigned threads = 0;  // 0: one per CPU
  unsigned burn_permille = 0;
};

unsigned parse_number(std::string_view text, unsigned max, const std::string& what) {
  unsigned number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 1 || number > max) {
    fail_usage(what + " must be a number from 1 to " + std::to_string(max));
  }
  return number;
}

Options parse_options(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    if (name == "--help" || name == "-h") {
      std::fputs(kUsage, stdout);
      std::exit(0);
    }
    if (name != "--listen" && name != "--threads" && name != "--burn-permille")
      fail_usage("unknown option " + std::string(name));
    if (++i == argc) fail_usage(std::string(name) + " needs a value");
    const std::string_view value = argv[i];
    if (name == "--threads") {
      options.threads = parse_number(value, 1024, "--threads");
      continue;
    }
    if (name == "--burn-permille") {
      options.burn_permille = parse_number(value, 1000, "--burn-permille");
      continue;
    }
    const std::size_t colon = value.rfind(':');
    if (colon == std::string_view::npos || colon == 0 || colon + 1 == value.size()) {
      fail_usage("--listen takes HOST:PORT");
    }
    options.host = value.substr(0, colon);
    options.port = std::to_string(parse_number(value.substr(colon + 1), 65535, "the port"));
    if (options.host.size() > 2 && options.host.front() == '[' && options.host.back() == ']') {
      options.host = options.host.substr(1, options.host.size() - 2);
    }
  }
  return options;
}

unsigned allowed_cpus() {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) < 0) fail("sched_getaffinity", errno);
  return static_cast<unsigned>(CPU_COUNT(&set));
}

int bound_socket(const addrinfo& address, bool share_port, const std::string& name) {
  const int fd = ::socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) fail("socket", errno);
  const int on = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);  // restart despite TIME_WAIT
  if (share_port && ::setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) < 0) {
    fail("SO_REUSEPORT", errno);
  }
  if (::bind(fd, address.ai_addr, address.ai_addrlen) < 0) fail("cannot listen on " + name, errno);
  return fd;
}

std::vector<int> listen_on(const Options& options, unsigned count) {
  const std::string name = options.host + ":" + options.port;
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* address = nullptr;
  if (const int error = ::getaddrinfo(options.host.c_str(), options.port.c_str(), &hints, &address)) {
    std::fprintf(stderr, "floor: cannot listen on %s: %s\n", name.c_str(), ::gai_strerror(error));
    std::_Exit(1);
  }
  // With SO_REUSEPORT a second server of the same user could bind a port that is in use, and would take half of the
  // connections. A socket without SO_REUSEPORT fails to bind.
  ::close(bound_socket(*address, false, name));

  std::vector<int> listeners;
  for (unsigned i = 0; i < count; ++i) {
    const int fd = bound_socket(*address, true, name);
    if (::listen(fd, SOMAXCONN) < 0) fail("cannot listen on " + name, errno);
    listeners.push_back(fd);
  }
  ::freeaddrinfo(address);
  return listeners;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse_options(argc, argv);
  std::signal(SIGTERM, [](int) { ::_exit(0); });
  std::signal(SIGINT, [](int) { ::_exit(0); });
  answers();
  const unsigned threads = options.threads == 0 ? allowed_cpus() : options.threads;
  // All listeners exist before the first connection is accepted: a listener added later would take its share of new
  // connections only from then on.
  const std::vector<int> listeners = listen_on(options, threads);
  for (unsigned i = 1; i < threads; ++i) {
    std::thread([&options, listener = listeners[i]] {
      Worker(listener, options.burn_permille).run();
    }).detach();
  }
  Worker(listeners[0], options.burn_permille).run();
}
