// Which addresses a network contains, and which texts are networks.
#include <tuza/netpoll/network.h>

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tuza::net::testing {
namespace {

bool contains(const char* network, const char* address) {
  return Network::parse(network).value().contains(IpAddress::parse(address).value());
}

TEST(Network, ContainsFromItsFirstAddressToItsLast) {
  EXPECT_FALSE(contains("10.32.0.0/11", "10.31.255.255"));
  EXPECT_TRUE(contains("10.32.0.0/11", "10.32.0.0"));
  EXPECT_TRUE(contains("10.32.0.0/11", "10.63.255.255"));
  EXPECT_FALSE(contains("10.32.0.0/11", "10.64.0.0"));
  EXPECT_FALSE(contains("2001:db8:8000::/33", "2001:db8:7fff:ffff::"));
  EXPECT_TRUE(contains("2001:db8:8000::/33", "2001:db8:ffff:ffff::1"));
  EXPECT_FALSE(contains("2001:db8:8000::/33", "2001:db9::"));
}

TEST(Network, WithoutAPrefixIsOneAddress) {
  EXPECT_TRUE(contains("192.0.2.1", "192.0.2.1"));
  EXPECT_FALSE(contains("192.0.2.1", "192.0.2.0"));
  EXPECT_TRUE(contains("::1", "::1"));
  EXPECT_FALSE(contains("::1", "::"));
}

TEST(Network, AnIpv4AddressIsTheSameThroughASocketOfIpv6) {
  EXPECT_TRUE(contains("10.0.0.0/8", "::ffff:10.1.2.3"));
  EXPECT_TRUE(contains("::ffff:10.0.0.0/104", "10.1.2.3"));
  EXPECT_FALSE(contains("10.0.0.0/8", "::10.1.2.3"));
  EXPECT_FALSE(contains("0.0.0.0/0", "::1")) << "all of IPv4 is not all";
  EXPECT_TRUE(contains("0.0.0.0/0", "255.255.255.255"));
  EXPECT_TRUE(contains("::/0", "1.2.3.4"));
}

TEST(Network, PeersOfUnixSocketsAreInUnixOnly) {
  const Network unix_sockets = Network::parse("unix:").value();
  EXPECT_TRUE(unix_sockets.contains(std::nullopt));
  EXPECT_FALSE(unix_sockets.contains(IpAddress::any_v6()));
  const Network all = Network::parse("::/0").value();
  EXPECT_FALSE(all.contains(std::nullopt));
  const std::vector<Network> both{all, unix_sockets};
  EXPECT_TRUE(any_contains(both, std::nullopt));
  EXPECT_FALSE(any_contains(std::vector<Network>(), IpAddress::loopback_v4()));
}

TEST(Network, IsWrittenAsItIsRead) {
  for (const char* text :
       {"10.0.0.0/8", "0.0.0.0/0", "192.0.2.1/32", "2001:db8::/32", "::/0", "::1/128", "unix:"}) {
    const Network network = Network::parse(text).value();
    EXPECT_EQ(network.text(), text);
    EXPECT_EQ(Network::parse(network.text()).value(), network);
  }
  EXPECT_EQ(Network::parse("::ffff:10.0.0.0/104").value().text(), "10.0.0.0/8");
}

TEST(Network, BitsBehindThePrefixMayBeDropped) {
  for (const auto& [text, network] : {std::pair("10.1.2.3/8", "10.0.0.0/8"),
                                      {"10.1.255.255/9", "10.0.0.0/9"},
                                      {"255.255.255.255/0", "0.0.0.0/0"},
                                      {"192.0.2.1", "192.0.2.1/32"},
                                      {"2001:db8:ffff::1/33", "2001:db8:8000::/33"},
                                      {"unix:", "unix:"}}) {
    EXPECT_EQ(Network::parse_masked(text).value().text(), network);
  }
  EXPECT_FALSE(Network::parse_masked("10.1.2.3/33"));
}

TEST(Network, OtherTextsAreRefused) {
  for (const std::string& text : {std::string(),
                                  std::string("/8"),
                                  std::string("10.0.0.0/"),
                                  std::string("10.0.0.0/33"),
                                  std::string("10.0.0.0/08"),
                                  std::string("10.0.0.0/-1"),
                                  std::string("10.0.0.0/+8"),
                                  std::string("10.0.0.0/8 "),
                                  std::string(" 10.0.0.0/8"),
                                  std::string("10.0.0.0/8/8"),
                                  std::string("10.0.0.1/8"),
                                  std::string("2001:db8::1/64"),
                                  std::string("::/129"),
                                  std::string("10.0/8"),
                                  std::string("010.0.0.0/8"),
                                  std::string("fe80::%eth0/64"),
                                  std::string("[::1]"),
                                  std::string("localhost"),
                                  std::string("unix:/run/a"),
                                  std::string("10.0.0.0\0/8", 11),
                                  std::string("10.0.0.0:80")}) {
    const Result<Network> parsed = Network::parse(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_TRUE(parsed.error().is(Errc::kBadAddress)) << text;
  }
}

}  // namespace
}  // namespace tuza::net::testing
