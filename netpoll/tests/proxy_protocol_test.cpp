// PROXY headers as documents: title, bytes, what they say; whole, with bytes behind, each prefix, and over a socket in two
// parts, split at every byte.
#include <tuza/netpoll/proxy_protocol.h>
#include <tuza/netpoll/tests/netpoll_testing.h>

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tuza::net::testing {
namespace {

using namespace std::string_literals;

const std::string kSignature = "\r\n\r\n\0\r\nQUIT\n"s;

// A header of version 2. `addresses` are followed by `fields`.
std::string binary(unsigned command, unsigned family, const std::string& addresses,
                   const std::string& fields = "") {
  const std::size_t length = addresses.size() + fields.size();
  return kSignature + static_cast<char>(0x20 | command) + static_cast<char>(family) +
         static_cast<char>(length >> 8) + static_cast<char>(length & 255) + addresses + fields;
}

std::string field(unsigned type, const std::string& value) {
  return std::string{static_cast<char>(type), static_cast<char>(value.size() >> 8),
                     static_cast<char>(value.size() & 255)} +
         value;
}

const std::string kFour = "\xcb\x00\x71\x07\xc0\x00\x02\x0a\xd3\x56\x01\xbb"s;
const std::string kSix =
    "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x07"
    "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x0a"
    "\xd3\x56\x01\xbb"s;

std::string unix_addresses(const std::string& client) {
  return client + std::string(108 - client.size(), '\0') + "/run/proxy"s + std::string(98, '\0');
}

// "client -> destination", "unix:path", or "nobody"; "?" if more bytes are needed; "!" for an error.
std::string read(std::string_view bytes) {
  const auto parsed = parse_proxy_header(bytes);
  if (!parsed) {
    EXPECT_TRUE(parsed.error().is(Errc::kBadMessage));
    return "!";
  }
  if (!*parsed) return "?";
  const ProxyHeader& header = **parsed;
  EXPECT_LE(header.bytes, bytes.size());
  const std::string size = " " + std::to_string(header.bytes);
  if (header.client) return to_string(*header.client) + " -> " + to_string(*header.destination) + size;
  if (header.unix_client) return "unix:" + *header.unix_client + size;
  return "nobody" + size;
}

struct Case {
  const char* title;
  std::string bytes;
  std::string says;  // without the size
};

std::vector<Case> good_cases() {
  const std::string four = "203.0.113.7:54102 -> 192.0.2.10:443",
                    six = "[2001:db8::7]:54102 -> [2001:db8::a]:443";
  return {
      {"IPv4 as text", "PROXY TCP4 203.0.113.7 192.0.2.10 54102 443\r\n", four},
      {"IPv6 as text", "PROXY TCP6 2001:db8::7 2001:db8::a 54102 443\r\n", six},
      {"the highest and the lowest port", "PROXY TCP4 255.255.255.255 0.0.0.0 65535 0\r\n",
       "255.255.255.255:65535 -> 0.0.0.0:0"},
      {"the longest addresses",
       "PROXY TCP6 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 "
       "65535\r\n",
       "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535 -> [ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535"},
      {"the proxy does not know", "PROXY UNKNOWN\r\n", "nobody"},
      {"the proxy does not know, and says more, up to 107 bytes",
       "PROXY UNKNOWN " + std::string(91, 'x') + "\r\n", "nobody"},
      {"IPv4 in binary", binary(1, 0x11, kFour), four},
      {"IPv6 in binary", binary(1, 0x21, kSix), six},
      {"a Unix socket", binary(1, 0x31, unix_addresses("/run/client")), "unix:/run/client"},
      {"a Unix socket without a name", binary(1, 0x31, unix_addresses("")), "unix:"},
      {"a Unix socket without a file", binary(1, 0x31, unix_addresses("\0name"s)), "unix:@name"},
      {"a path as long as it may be", binary(1, 0x31, unix_addresses(std::string(108, 'p'))),
       "unix:" + std::string(108, 'p')},
      {"a health check of the proxy", binary(0, 0, ""), "nobody"},
      {"a health check with addresses, to be ignored", binary(0, 0x11, kFour), "nobody"},
      {"a health check with rubbish, to be skipped", binary(0, 0xff, "rubbish"), "nobody"},
      {"no family, with bytes to be skipped", binary(1, 0, "some bytes"), "nobody"},
      {"fields behind the addresses",
       binary(1, 0x11, kFour, field(1, "h2") + field(2, "example.com") + field(4, "")), four},
      // Computed by a shift register with the polynomial 0x1EDC6F41, which gives 0xE3069283 for "123456789".
      {"a checksum", binary(1, 0x11, kFour, field(3, "\x60\x5d\xf0\xe8")), four},
      {"the longest header",
       binary(1, 0x11, kFour, field(4, std::string(kProxyHeaderBytesMax - 16 - 12 - 3, '\0'))), four},
  };
}

std::vector<Case> bad_cases() {
  std::vector<Case> cases;
  const auto add = [&cases](const char* title, std::string bytes) {
    cases.push_back({title, std::move(bytes), "!"});
  };
  add("a request without a header", "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  add("a TLS handshake without a header", "\x16\x03\x01\x02\x00\x01"s);
  add("lower case", "proxy TCP4 203.0.113.7 192.0.2.10 54102 443\r\n");
  add("another protocol", "PROXY UDP4 203.0.113.7 192.0.2.10 54102 443\r\n");
  add("a family with more behind it", "PROXY UNKNOWNS\r\n");
  add("no family", "PROXY \r\n");
  add("two spaces", "PROXY TCP4  203.0.113.7 192.0.2.10 54102 443\r\n");
  add("a tab", "PROXY TCP4\t203.0.113.7 192.0.2.10 54102 443\r\n");
  add("a space at the end", "PROXY TCP4 203.0.113.7 192.0.2.10 54102 443 \r\n");
  add("a port is missing", "PROXY TCP4 203.0.113.7 192.0.2.10 54102\r\n");
  add("the addresses are missing", "PROXY TCP4\r\n");
  add("port 65536", "PROXY TCP4 203.0.113.7 192.0.2.10 65536 443\r\n");
  add("a port with a zero in front", "PROXY TCP4 203.0.113.7 192.0.2.10 054102 443\r\n");
  add("a port with a sign", "PROXY TCP4 203.0.113.7 192.0.2.10 +54102 443\r\n");
  add("an address with a zero in front", "PROXY TCP4 203.0.113.07 192.0.2.10 54102 443\r\n");
  add("a name", "PROXY TCP4 localhost 192.0.2.10 54102 443\r\n");
  add("IPv6 as TCP4", "PROXY TCP4 2001:db8::7 192.0.2.10 54102 443\r\n");
  add("IPv4 as TCP6", "PROXY TCP6 203.0.113.7 2001:db8::a 54102 443\r\n");
  add("a zone", "PROXY TCP6 fe80::1%1 2001:db8::a 54102 443\r\n");
  add("a zero byte", "PROXY TCP4 203.0.113.7\0x 192.0.2.10 54102 443\r\n"s);
  add("a bare line feed", "PROXY TCP4 203.0.113.7 192.0.2.10 54102 443\n" + std::string(107, ' '));
  add("108 bytes", "PROXY UNKNOWN " + std::string(92, 'x') + "\r\n");
  add("no line end", std::string("PROXY TCP4 ") + std::string(200, '1'));
  add("version 1 in binary", kSignature + "\x11\x11\x00\x0c"s + kFour);
  add("version 3", kSignature + "\x31\x11\x00\x0c"s + kFour);
  add("command 2", binary(2, 0x11, kFour));
  add("datagrams", binary(1, 0x12, kFour));
  add("an unknown family", binary(1, 0x41, kFour));
  add("family and protocol half", binary(1, 0x10, kFour));
  add("too short for IPv4", binary(1, 0x11, kFour.substr(1)));
  add("too short for IPv6", binary(1, 0x21, kSix.substr(1)));
  add("too short for Unix", binary(1, 0x31, unix_addresses("").substr(1)));
  add("a field that is cut off", binary(1, 0x11, kFour, "\x01\x00"s));
  add("a field longer than the header", binary(1, 0x11, kFour, "\x01\x00\x03h2"s));
  add("a wrong checksum", binary(1, 0x11, kFour, field(3, "\x01\x02\x03\x04")));
  add("a checksum of three bytes", binary(1, 0x11, kFour, field(3, "\x01\x02\x03")));
  add("longer than the limit",
      binary(1, 0x11, kFour, field(4, std::string(kProxyHeaderBytesMax - 16 - 12 - 3 + 1, '\0'))));
  return cases;
}

TEST(ProxyHeader, SaysWhoTheClientIs) {
  for (const Case& one : good_cases()) {
    SCOPED_TRACE(one.title);
    const std::string expected = one.says + " " + std::to_string(one.bytes.size());
    EXPECT_EQ(read(one.bytes), expected);
    EXPECT_EQ(read(one.bytes + "GET / HTTP/1.1\r\n"), expected);
    EXPECT_EQ(read(one.bytes + one.bytes), expected);
    for (std::size_t n = 0; n < one.bytes.size(); ++n) {
      // In memory of its own, so that a read behind it would be seen.
      const std::vector<char> prefix(one.bytes.begin(), one.bytes.begin() + static_cast<std::ptrdiff_t>(n));
      ASSERT_EQ(read({prefix.data(), prefix.size()}), "?") << n << " bytes";
    }
  }
}

// What has once been refused stays refused, and no prefix of it is a header.
TEST(ProxyHeader, MalformedOnesAreRefused) {
  for (const Case& one : bad_cases()) {
    SCOPED_TRACE(one.title);
    EXPECT_EQ(read(one.bytes), "!");
    bool refused = false;
    for (std::size_t n = 0; n <= one.bytes.size(); ++n) {
      const std::string said = read(one.bytes.substr(0, n));
      ASSERT_EQ(said, refused || said == "!" ? "!" : "?") << n << " bytes";
      refused = said == "!";
    }
  }
}

TEST(ProxyHeader, AConnectionWithoutOneIsRefusedAtItsFirstByte) {
  EXPECT_EQ(read("G"), "!");
  EXPECT_EQ(read("\x16"), "!");
  EXPECT_EQ(read("PROXI"), "!");
  EXPECT_EQ(read("\r\n\r\n\r"), "!");
}

class ReceiveProxyHeaderTest : public WithProcs {};
TUZA_WITH_PROCS(ReceiveProxyHeaderTest);

TEST_P(ReceiveProxyHeaderTest, TakesTheHeaderAndNoByteMoreHoweverItArrives) {
  run_with(GetParam(), [] {
    Listener listener = listen_on_loopback();
    for (const std::string& header :
         {"PROXY TCP4 203.0.113.7 192.0.2.10 54102 443\r\n"s, binary(1, 0x11, kFour)}) {
      const std::string sent = header + "the first bytes";
      for (std::size_t split = 0; split <= sent.size(); ++split) {
        TcpPair pair = connect(listener);
        ASSERT_TRUE(pair.client.write_all(sent.substr(0, split)));
        WaitGroup receiving;
        std::string client, rest;
        receiving.go([&] {
          const auto received = receive_proxy_header(pair.server);
          client = received ? pair.server.remote_address().value() : received.error().message();
          rest = read_to_end(pair.server);
        });
        if (split < header.size()) {
          yield_until([] { return goroutines_waiting(WaitReason::kIoRead) > 0; });
        }
        ASSERT_TRUE(pair.client.write_all(sent.substr(split)));
        ASSERT_TRUE(pair.client.close_write());
        receiving.wait();
        ASSERT_EQ(client, "203.0.113.7:54102") << "split at " << split;
        ASSERT_EQ(rest, "the first bytes") << "split at " << split;
        EXPECT_EQ(to_string(pair.server.remote_endpoint().value()), "203.0.113.7:54102");
      }
    }
  });
}

TEST_P(ReceiveProxyHeaderTest, EndsWithTheStreamAndWithTheDeadline) {
  run_with(GetParam(), [] {
    TcpPair ended = tcp_pair();
    ASSERT_TRUE(ended.client.write_all("PROXY TCP4 203.0"));
    ASSERT_TRUE(ended.client.close_write());
    const auto cut_off = receive_proxy_header(ended.server);
    ASSERT_FALSE(cut_off);
    EXPECT_TRUE(cut_off.error().is(Errc::kEndOfStream));

    TcpPair slow = tcp_pair();
    ASSERT_TRUE(slow.client.write_all("PROXY TCP4 203.0"));
    slow.server.set_read_deadline(Clock::now() + 20ms);
    const auto late = receive_proxy_header(slow.server);
    ASSERT_FALSE(late);
    EXPECT_TRUE(late.error().timeout());
  });
}

TEST_P(ReceiveProxyHeaderTest, ThePeerStaysIfTheProxyNamesNone) {
  run_with(GetParam(), [] {
    TcpPair pair = tcp_pair();
    const std::string before = pair.server.remote_address().value();
    ASSERT_TRUE(pair.client.write_all("PROXY UNKNOWN\r\n" + binary(1, 0x31, unix_addresses("/run/client"))));
    ASSERT_TRUE(receive_proxy_header(pair.server));
    EXPECT_EQ(pair.server.remote_address().value(), before);
    ASSERT_TRUE(receive_proxy_header(pair.server));
    Conn moved = std::move(pair.server);
    EXPECT_EQ(moved.remote_address().value(), "unix:/run/client");
    EXPECT_TRUE(moved.remote_endpoint().error().is(std::errc::address_family_not_supported));
  });
}

}  // namespace
}  // namespace tuza::net::testing
