// A load client that a slow server cannot slow down: it sends requests at times that are fixed beforehand.
//
// The client measures the delay from the planned time of each request to its answer. While a connection waits for an
// answer, the planned times of its next requests may pass; the delay of these requests also counts from their planned
// times. Requests that are never answered count with the time that they have waited.
//
// With --rate 0 the client does the opposite: each connection sends its next request when the last one has been
// answered, so the server always has as many requests as there are connections.
//
// The client connects, asks for `/` once on each connection, prints "ready" and waits for a line on standard input.
// The end of that input ends the client early. It has one thread and needs no privileges. It prints its results as one
// line of JSON.

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::nanoseconds;

constexpr std::string_view kHello = "Hello, World!";
constexpr int kEventsMax = 256;
constexpr const char* kUsage =
    "usage: stall_client --port N --connections N --rate N --seconds N --path PATH --contains TEXT\n"
    "  --rate N         requests per second, of all connections together; 0: one after the other\n"
    "  --contains TEXT  what each body must have in it (default: it must be `Hello, World!`)\n"
    "  --drain N        seconds to wait for answers afterwards (default 1)\n";

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "stall_client: %s\n", what.c_str());
  std::_Exit(1);
}
[[noreturn]] void fail_errno(const std::string& what) { fail(what + ": " + std::strerror(errno)); }

struct Options {
  unsigned port = 0, connections = 1, rate = 0, seconds = 1, drain = 1;
  std::string path = "/";
  std::string contains;
};

Options parse_options(int argc, char** argv) {
  Options options;
  const std::array<std::pair<std::string_view, unsigned*>, 5> numbers{
      {{"--port", &options.port},
       {"--connections", &options.connections},
       {"--rate", &options.rate},
       {"--seconds", &options.seconds},
       {"--drain", &options.drain}}};
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    const std::string_view value = argv[i + 1];
    const auto* const found =
        std::ranges::find(numbers, name, &std::pair<std::string_view, unsigned*>::first);
    if (name == "--path") {
      options.path = value;
    } else if (name == "--contains") {
      options.contains = value;
    } else if (found == numbers.end() ||
               std::from_chars(value.data(), value.data() + value.size(), *found->second).ptr !=
                   value.data() + value.size()) {
      options.port = 0;
      break;
    }
  }
  if (argc % 2 == 0 || options.port == 0 || options.port > 65535 || options.connections == 0) {
    std::fputs(kUsage, stderr);
    std::_Exit(2);
  }
  return options;
}

// An answer that has arrived completely.
struct Answer {
  bool good = false;
  std::size_t bytes = 0;
};

// Returns nothing while the answer is incomplete. `contains`: see kUsage.
std::optional<Answer> parse(std::string_view in, const std::string& contains) {
  const std::size_t end = in.find("\r\n\r\n");
  if (end == std::string_view::npos) return std::nullopt;
  const std::string head(in.substr(0, end + 2));
  const char* const field = ::strcasestr(head.c_str(), "\r\ncontent-length:");
  if (field == nullptr) return Answer{.good = false, .bytes = in.size()};
  const std::size_t length = std::strtoull(field + std::strlen("\r\ncontent-length:"), nullptr, 10);
  if (in.size() < end + 4 + length) return std::nullopt;
  const std::string_view body = in.substr(end + 4, length);
  const bool right = contains.empty() ? body == kHello : body.find(contains) != std::string_view::npos;
  return Answer{.good = right && head.starts_with("HTTP/1.1 200 "), .bytes = end + 4 + length};
}

struct Connection {
  int fd = -1;
  std::string in;
  bool waiting = false;       // for an answer
  bool lost = false;          // closed by the server, or by this client because of what the server sent
  std::uint64_t begun = 0;    // requests sent
  std::uint64_t due = 0;      // requests whose planned time has come and that have not been answered
  Clock::time_point since{};  // planned time of the request in flight
};

class Client {
 public:
  explicit Client(const Options& options)
      : options_(options), request_(request_for(options.path)), epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
    connect_all();
  }

  void run() {
    start_ = Clock::now();
    end_ = start_ + std::chrono::seconds(options_.seconds);
    if (options_.rate == 0) {
      for (Connection& connection : connections_) send_next(connection);
    }
    while (!over()) {
      send_due();
      wait();
    }
    finish();
  }

  void print() {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    const auto seconds = [](const timeval& t) {
      return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
    };
    const double window = std::chrono::duration<double>(std::min(Clock::now(), end_) - start_).count();
    std::ranges::sort(lateness_us_);
    std::ranges::sort(own_us_);
    std::printf(R"({"answered":%llu,"unanswered":%llu,"wrong":%llu,"lost":%llu,"rate":%.1f,"cpu_s":%.3f,)"
                R"("own_p99_us":%.1f,"p50_us":%.1f,"p99_us":%.1f,"p999_us":%.1f,"max_us":%.1f})"
                "\n",
                count(answered_), count(unanswered_), count(wrong_), count(lost_),
                static_cast<double>(in_time_) / window, seconds(usage.ru_utime) + seconds(usage.ru_stime),
                percentile(own_us_, 0.99), percentile(lateness_us_, 0.5), percentile(lateness_us_, 0.99),
                percentile(lateness_us_, 0.999), percentile(lateness_us_, 1));
  }

 private:
  static unsigned long long count(std::uint64_t number) { return number; }

  static double percentile(const std::vector<double>& sorted, double share) {
    if (sorted.empty()) return 0;
    const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(sorted.size())));
    return sorted[std::max<std::size_t>(rank, 1) - 1];
  }

  static std::string request_for(const std::string& path) {
    return "GET " + path + " HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
  }

  static double us(Clock::duration duration) {
    return std::chrono::duration<double, std::micro>(duration).count();
  }

  void connect_all() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
    address.sin_port = ::htons(static_cast<std::uint16_t>(options_.port));
    const std::string hello = request_for("/");
    connections_.resize(options_.connections);
    for (std::size_t i = 0; i < connections_.size(); ++i) {
      const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      if (fd < 0) fail_errno("socket");
      connections_[i].fd = fd;
      const timeval patience{.tv_sec = 10, .tv_usec = 0};
      const int on = 1;
      ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
      ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
      ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
        fail_errno("connect");
      if (::send(fd, hello.data(), hello.size(), MSG_NOSIGNAL) < 0) fail_errno("send");
    }
    for (std::size_t i = 0; i < connections_.size(); ++i) {
      receive_hello(connections_[i]);
      ::fcntl(connections_[i].fd, F_SETFL, O_NONBLOCK);
      watch(connections_[i].fd, i);
    }
    watch(STDIN_FILENO, connections_.size());
  }

  void watch(int fd, std::size_t index) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = index;
    // epoll cannot watch a regular file as standard input, and a regular file never reports an end.
    if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) != 0 && errno != EPERM) fail_errno("epoll_ctl");
  }

  static void receive_hello(Connection& connection) {
    std::array<char, 4096> buffer;
    for (;;) {
      const ssize_t n = ::recv(connection.fd, buffer.data(), buffer.size(), 0);
      if (n <= 0) fail("no answer to the first request");
      connection.in.append(buffer.data(), static_cast<std::size_t>(n));
      if (const auto answer = parse(connection.in, "")) {
        if (!answer->good || answer->bytes != connection.in.size())
          fail("a wrong answer to the first request");
        connection.in.clear();
        return;
      }
    }
  }

  // The planned time of request `number`, counted over all connections.
  [[nodiscard]] Clock::time_point time_of(std::uint64_t number) const {
    return start_ + nanoseconds(static_cast<std::int64_t>(number) * 1'000'000'000 / options_.rate);
  }
  // The planned time of the connection's request `begun`.
  [[nodiscard]] Clock::time_point time_of(const Connection& connection, std::uint64_t begun) const {
    return time_of(begun * connections_.size() +
                   static_cast<std::uint64_t>(&connection - connections_.data()));
  }
  [[nodiscard]] std::uint64_t total() const { return std::uint64_t{options_.rate} * options_.seconds; }

  [[nodiscard]] bool over() const {
    if (stopped_ || Clock::now() >= end_ + std::chrono::seconds(options_.rate == 0 ? 0 : options_.drain))
      return true;
    return options_.rate != 0 && scheduled_ == total() && due_ == 0;
  }

  void send_due() {
    if (options_.rate == 0) return;
    for (Clock::time_point now = Clock::now(); scheduled_ < total() && time_of(scheduled_) <= now;
         ++scheduled_) {
      Connection& connection = connections_[scheduled_ % connections_.size()];
      ++connection.due;
      ++due_;
      if (connection.waiting || connection.lost) continue;
      own_us_.push_back(us(Clock::now() - time_of(scheduled_)));
      send_next(connection);
    }
  }

  void send_next(Connection& connection) {
    connection.since = options_.rate == 0 ? Clock::now() : time_of(connection, connection.begun);
    ++connection.begun;
    connection.waiting = true;
    const ssize_t n = ::send(connection.fd, request_.data(), request_.size(), MSG_NOSIGNAL);
    if (n != static_cast<ssize_t>(request_.size())) lose(connection);
  }

  void wait() {
    timespec patience{.tv_sec = 0, .tv_nsec = 100'000'000};
    if (options_.rate != 0 && scheduled_ < total()) {
      const auto left = std::chrono::duration_cast<nanoseconds>(time_of(scheduled_) - Clock::now());
      patience.tv_nsec = std::clamp<long>(left.count(), 0, patience.tv_nsec);
    }
    std::array<epoll_event, kEventsMax> events;
    const int ready = ::epoll_pwait2(epoll_, events.data(), kEventsMax, &patience, nullptr);
    if (ready < 0 && errno != EINTR) fail_errno("epoll_pwait2");
    for (int i = 0; i < ready; ++i) {
      const std::uint64_t index = events[static_cast<std::size_t>(i)].data.u64;
      if (index == connections_.size()) {
        char ignored[64];
        if (::read(STDIN_FILENO, ignored, sizeof ignored) <= 0) stopped_ = true;
      } else if (!connections_[index].lost) {
        receive(connections_[index]);
      }
    }
  }

  void receive(Connection& connection) {
    std::array<char, 4096> buffer;
    const ssize_t n = ::recv(connection.fd, buffer.data(), buffer.size(), 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n <= 0) return lose(connection);
    connection.in.append(buffer.data(), static_cast<std::size_t>(n));
    const auto answer = parse(connection.in, options_.contains);
    if (!answer) return;
    const Clock::time_point now = Clock::now();
    lateness_us_.push_back(us(now - connection.since));
    ++answered_;
    if (now <= end_) ++in_time_;
    if (!answer->good) ++wrong_;
    if (!connection.waiting || answer->bytes != connection.in.size()) {
      ++wrong_;  // more bytes than were asked for
      return lose(connection);
    }
    connection.in.clear();
    connection.waiting = false;
    if (options_.rate != 0) {
      --connection.due;
      --due_;
    }
    if (options_.rate == 0 || connection.due > 0) send_next(connection);
  }

  void lose(Connection& connection) {
    connection.lost = true;
    ++lost_;
    ::close(connection.fd);
  }

  // Requests that have not been answered have waited at least until now.
  void finish() {
    const Clock::time_point now = Clock::now();
    if (options_.rate == 0) return;
    for (const Connection& connection : connections_) {
      const std::uint64_t first = connection.begun - (connection.waiting ? 1 : 0);
      for (std::uint64_t i = 0; i < connection.due; ++i) {
        lateness_us_.push_back(us(now - time_of(connection, first + i)));
        ++unanswered_;
      }
    }
  }

  const Options options_;
  const std::string request_;
  const int epoll_;
  std::vector<Connection> connections_;
  Clock::time_point start_{}, end_{};
  std::uint64_t scheduled_ = 0, due_ = 0;
  bool stopped_ = false;
  std::uint64_t answered_ = 0, in_time_ = 0, unanswered_ = 0, wrong_ = 0, lost_ = 0;
  std::vector<double> lateness_us_;
  std::vector<double> own_us_;  // lateness of requests whose connection was free: this program's own delay
};

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse_options(argc, argv);
  Client client(options);
  std::puts("ready");
  std::fflush(stdout);
  if (char line[64]; ::read(STDIN_FILENO, line, sizeof line) <= 0) return 0;
  client.run();
  client.print();
}
