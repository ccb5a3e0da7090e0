#include <tuza/netpoll/tests/netpoll_testing.h>

#include <sys/socket.h>
#include <sys/syscall.h>
#include <tuza/sched/arch/syscall.h>

#include <cstdio>
#include <cstdlib>

namespace tuza::net::testing {

Listener listen_on_loopback() { return listen("tcp", "127.0.0.1:0").value(); }

TcpPair connect(Listener& listener) {
  Conn client = dial("tcp", to_string(listener.endpoint())).value();
  return {std::move(client), listener.accept().value()};
}

TcpPair tcp_pair() {
  Listener listener = listen_on_loopback();
  return connect(listener);
}

Numbers local_numbers() {
  int fds[2] = {-1, -1};
  EXPECT_EQ(sys::invoke(SYS_socketpair, AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
  return {fds[0], fds[1]};
}

LocalPair local_pair() {
  const Numbers numbers = local_numbers();
  return {detail::DescriptorOwner(Descriptor::open(numbers.here, "test").value()),
          detail::DescriptorOwner(Descriptor::open(numbers.there, "test").value())};
}

std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

namespace {

template <class Source>
std::string read_text(Source& source, std::size_t at_most) {
  std::string text(at_most, '\0');
  const Result<std::size_t> n = source.read(std::as_writable_bytes(std::span(text)));
  if (!n) return "<" + n.error().message() + ">";
  text.resize(*n);
  return text;
}

}  // namespace

std::string read_some(Conn& conn, std::size_t at_most) { return read_text(conn, at_most); }
std::string read_some(Descriptor& descriptor, std::size_t at_most) { return read_text(descriptor, at_most); }

std::string read_to_end(Conn& conn) {
  std::string all;
  std::string buffer(65536, '\0');
  for (;;) {
    const Result<std::size_t> n = conn.read(std::span(buffer));
    if (!n) return all + "<" + n.error().message() + ">";
    if (*n == 0) return all;
    all.append(buffer, 0, *n);
  }
}

void echo(Session& session) {
  for (std::string got; session.begin_idle();) {
    got = read_some(session.conn());
    session.end_idle();
    if (got.empty() || got.starts_with("<") || !session.conn().write_all(got)) return;
  }
}

bool answers(Conn& conn) { return conn.write_all("hello") && read_some(conn) == "hello"; }

std::uint64_t seed() {
  static const std::uint64_t value = [] {
    const char* text = std::getenv("TUZA_TEST_SEED");
    const std::uint64_t chosen =
        text != nullptr ? std::strtoull(text, nullptr, 10) : std::uint64_t{std::random_device()()};
    std::printf("TUZA_TEST_SEED=%llu\n", static_cast<unsigned long long>(chosen));
    return chosen;
  }();
  return value;
}

std::string random_bytes(std::mt19937_64& random, std::size_t n) {
  std::string text(n, '\0');
  for (char& c : text) c = static_cast<char>(random());
  return text;
}

void fill(Descriptor& descriptor) {
  const std::string block(4096, 'f');
  for (;;) {
    const Result<long> sent = descriptor.control("fill", [&block](int fd) {
      return sys::invoke(SYS_sendto, fd, block.data(), block.size(), MSG_NOSIGNAL | MSG_DONTWAIT, nullptr, 0);
    });
    if (!sent) return;
  }
}

}  // namespace tuza::net::testing
