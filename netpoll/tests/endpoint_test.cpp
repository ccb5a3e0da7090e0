// Addresses as text: which texts are valid, and which are not.
#include <tuza/netpoll/endpoint.h>

#include <tuza/netpoll/socket/resolve_for.h>
#include <tuza/sched/sync/context.h>

#include <gtest/gtest.h>
#include <netdb.h>
#include <unistd.h>

#include <sstream>

namespace tuza::net {
namespace {

using namespace std::string_view_literals;

TEST(Endpoint, GoodOnesSurviveTheRoundTrip) {
  for (const char* text : {"127.0.0.1:80", "0.0.0.0:0", "255.255.255.255:65535", "[::1]:8080", "[::]:1",
                           "[fe80::1]:443", "[2001:db8::ff00:42:8329]:65535"}) {
    const Result<Endpoint> endpoint = parse_endpoint(text);
    ASSERT_TRUE(endpoint) << text;
    EXPECT_EQ(to_string(*endpoint), text);
    EXPECT_EQ((std::ostringstream() << *endpoint).str(), text);
    EXPECT_EQ((std::ostringstream() << Endpoint(*endpoint).address()).str(), endpoint->address().to_string());
  }
}

TEST(Endpoint, WithoutAHostItIsEveryAddressOfBothVersions) {
  const Endpoint any = parse_endpoint(":8080").value();
  EXPECT_TRUE(any.address().is_v6());
  EXPECT_TRUE(any.address().is_unspecified());
  EXPECT_EQ(any.port(), 8080);
}

TEST(Endpoint, BadOnesAreNamedInTheError) {
  for (const std::string_view text : {""sv,
                                      ":"sv,
                                      "80"sv,
                                      "127.0.0.1"sv,
                                      "127.0.0.1:"sv,
                                      "127.0.0.1:http"sv,
                                      "127.0.0.1:65536"sv,
                                      "127.0.0.1:-1"sv,
                                      "127.0.0.1:+1"sv,
                                      "127.0.0.1: 80"sv,
                                      "127.0.0.1:80 "sv,
                                      " 127.0.0.1:80"sv,
                                      "127.0.0.1:0x50"sv,
                                      "127.0.0.1:80:80"sv,
                                      "::1:80"sv,
                                      "[::1]"sv,
                                      "[::1:80"sv,
                                      "::1]:80"sv,
                                      "[::1]80"sv,
                                      "[[::1]]:80"sv,
                                      "127.0.0:80"sv,
                                      "127.0.0.256:80"sv,
                                      "127.0.0.1.1:80"sv,
                                      "localhost:80"sv,
                                      "[127.0.0.1]:80"sv,
                                      "[]:80"sv,
                                      "[g::1]:80"sv,
                                      "127.0.0.1\0.example.org:80"sv,
                                      "127.0.0.1:80\0"sv}) {
    const Result<Endpoint> endpoint = parse_endpoint(text);
    ASSERT_FALSE(endpoint) << '"' << text << "\" became " << to_string(*endpoint);
    EXPECT_TRUE(endpoint.error().is(Errc::kBadAddress));
    EXPECT_TRUE(endpoint.error().subject().starts_with(std::string(text) + ": "));
  }
}

TEST(Endpoint, TheErrorSaysWhatWasExpected) {
  const auto why = [](std::string_view text) {
    const Error error = parse_endpoint(text).error();
    return std::string(error.message().substr(std::string_view("parse host:port ").size()));
  };
  EXPECT_EQ(why("nonsense"), "nonsense: no port: invalid address");
  EXPECT_EQ(why("10.0.0.1:"), "10.0.0.1:: no port: invalid address");
  EXPECT_EQ(why("10.0.0.1:http"), "10.0.0.1:http: the port is no number: invalid address");
  EXPECT_EQ(why("10.0.0.1:-1"), "10.0.0.1:-1: the port is no number: invalid address");
  EXPECT_EQ(why("10.0.0.1:65536"), "10.0.0.1:65536: port out of range: invalid address");
  EXPECT_EQ(why("::1:80"), "::1:80: an IPv6 address, and nothing else, must be in brackets: invalid address");
  EXPECT_EQ(why("db:80"), "db:80: the host is no IP address: invalid address");
}

TEST(Endpoint, NamesOfSystemCallsSurviveTheRoundTrip) {
  for (const char* text :
       {"127.0.0.1:80", "0.0.0.0:0", "[2001:db8::1]:65535", "[::ffff:192.0.2.1]:1", "[fe80::1%lo]:2"}) {
    const Endpoint endpoint = parse_endpoint(text).value();
    struct sockaddr_storage name;
    const socklen_t length = to_sockaddr(endpoint, name);
    const auto* address = reinterpret_cast<const struct sockaddr*>(&name);
    EXPECT_EQ(from_sockaddr(address, length), endpoint) << text;
    EXPECT_EQ(from_sockaddr(address, length - 1), std::nullopt) << text;
    name.ss_family = AF_UNIX;
    EXPECT_EQ(from_sockaddr(address, length), std::nullopt) << text;
  }
}

TEST(Endpoint, ResolveTakesAddresses) {
  EXPECT_EQ(to_string(resolve("127.0.0.1:80").value()), "127.0.0.1:80");
}

// A minimal system may not know its own name: then that is the error to report.
TEST(Endpoint, ResolveKnowsTheNamesThatTheSystemKnows) {
  char name[256] = {};
  ASSERT_EQ(gethostname(name, sizeof name - 1), 0);
  const std::string own = std::string(name) + ":80";
  addrinfo hints{}, *found = nullptr;
  const int code = getaddrinfo(name, nullptr, &hints, &found);
  const bool known = code == 0;
  if (known) freeaddrinfo(found);
  const Result<Endpoint> resolved = resolve(own);
  ASSERT_EQ(resolved.has_value(), known);
  if (known) {
    EXPECT_EQ(resolved->port(), 80);
  } else {
    EXPECT_EQ(resolved.error().is(Errc::kNoSuchHost), code == EAI_NONAME) << resolved.error().message();
  }
}

// RFC 6761: whatever the system's files and name servers say.
TEST(Endpoint, LocalhostAndNamesBelowItAreLoopback) {
  for (const char* text : {"localhost:80", "LocalHost:80", "localhost.:80", "app.localhost:80"}) {
    EXPECT_EQ(to_string(resolve(text).value()), "127.0.0.1:80") << text;
    const std::vector<Endpoint> all = resolve_for(Context::background(), "tcp", text).value();
    ASSERT_EQ(all.size(), 2U) << text;
    EXPECT_EQ(to_string(all[1]), "[::1]:80") << text;
    EXPECT_EQ(to_string(resolve_for(Context::background(), "tcp6", text).value().front()), "[::1]:80")
        << text;
  }
}

TEST(Endpoint, ResolveRefusesWhatIsNoHostAndPort) {
  EXPECT_TRUE(resolve("localhost").error().is(Errc::kBadAddress));
  EXPECT_TRUE(resolve("localhost\0.example.org:80"sv).error().is(Errc::kBadAddress));
}

}  // namespace
}  // namespace tuza::net
