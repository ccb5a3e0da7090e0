// Addresses without a port: which texts are valid, and which addresses are the same.
#include <tuza/netpoll/ip_address.h>

#include <gtest/gtest.h>

namespace tuza::net {
namespace {

using namespace std::string_view_literals;

TEST(IpAddress, TextsSurviveTheRoundTrip) {
  for (const char* text : {"0.0.0.0", "127.0.0.1", "255.255.255.255", "::", "::1", "2001:db8::ff00:42:8329",
                           "::ffff:192.0.2.1", "fe80::1%lo", "fe80::1%4000000"}) {
    const Result<IpAddress> address = IpAddress::parse(text);
    ASSERT_TRUE(address) << text;
    EXPECT_EQ(address->to_string(), text);
    EXPECT_EQ(IpAddress::parse(address->to_string()).value(), *address);
  }
}

TEST(IpAddress, OtherTextsAreRefused) {
  for (const std::string_view text : {""sv,
                                      "localhost"sv,
                                      "127.0.0"sv,
                                      "127.1"sv,
                                      "127.0.0.256"sv,
                                      "0127.0.0.1"sv,
                                      "127.0.0.1 "sv,
                                      " ::1"sv,
                                      "[::1]"sv,
                                      "::1::"sv,
                                      "12345::"sv,
                                      "127.0.0.1%lo"sv,
                                      "fe80::1%"sv,
                                      "fe80::1%no-such-interface"sv,
                                      "fe80::1%4294967296"sv,
                                      "fe80::1%-1"sv,
                                      "127.0.0.1\0"sv,
                                      "127.0.0.1\0x"sv,
                                      "::1\0"sv,
                                      "fe80::1%lo\0"sv}) {
    const Result<IpAddress> address = IpAddress::parse(text);
    ASSERT_FALSE(address) << '"' << text << "\" became " << address->to_string();
    EXPECT_TRUE(address.error().is(Errc::kBadAddress));
    EXPECT_EQ(address.error().subject(), text);
  }
}

TEST(IpAddress, KindsOfAddresses) {
  const auto parsed = [](const char* text) { return IpAddress::parse(text).value(); };
  EXPECT_EQ(IpAddress(), parsed("0.0.0.0"));
  EXPECT_EQ(IpAddress::any_v6(), parsed("::"));
  EXPECT_EQ(IpAddress::loopback_v4(), parsed("127.0.0.1"));
  EXPECT_EQ(IpAddress::loopback_v6(), parsed("::1"));
  EXPECT_NE(IpAddress::any_v4(), IpAddress::any_v6());
  for (const char* text : {"127.0.0.1", "127.255.1.2", "::1"})
    EXPECT_TRUE(parsed(text).is_loopback()) << text;
  for (const char* text : {"128.0.0.1", "::2", "::", "::ffff:127.0.0.1"})
    EXPECT_FALSE(parsed(text).is_loopback()) << text;
  for (const char* text : {"0.0.0.0", "::"}) EXPECT_TRUE(parsed(text).is_unspecified()) << text;
  for (const char* text : {"0.0.0.1", "::1", "::ffff:0.0.0.0"})
    EXPECT_FALSE(parsed(text).is_unspecified()) << text;
}

TEST(IpAddress, AMappedAddressIsAnotherOneUntilItIsUnmapped) {
  const IpAddress mapped = IpAddress::parse("::ffff:192.0.2.1").value(),
                  plain = IpAddress::parse("192.0.2.1").value();
  EXPECT_TRUE(mapped.is_v6() && mapped.is_v4_mapped());
  EXPECT_NE(mapped, plain);
  EXPECT_EQ(mapped.unmapped(), plain);
  EXPECT_EQ(mapped.bytes(), plain.bytes());
  EXPECT_EQ(plain.unmapped(), plain);
  for (const char* text : {"::fffe:192.0.2.1", "::192.0.2.1", "1::ffff:192.0.2.1"}) {
    const IpAddress other = IpAddress::parse(text).value();
    EXPECT_FALSE(other.is_v4_mapped()) << text;
    EXPECT_EQ(other.unmapped(), other) << text;
  }
}

TEST(IpAddress, BytesAreInTheOrderOfTheText) {
  EXPECT_EQ(IpAddress(IpAddress::V4Bytes{192, 0, 2, 1}).to_string(), "192.0.2.1");
  EXPECT_EQ(IpAddress(IpAddress::V6Bytes{0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}).to_string(),
            "2001:db8::1");
  // Of a temporary, too: they are values.
  EXPECT_EQ(IpAddress::loopback_v4().v4_bytes(), (IpAddress::V4Bytes{127, 0, 0, 1}));
  const auto& v6 = IpAddress::loopback_v6().bytes();
  EXPECT_EQ(v6[15], 1);
  EXPECT_LT(IpAddress::parse("192.0.2.1").value(), IpAddress::parse("192.0.10.1").value());
}

}  // namespace
}  // namespace tuza::net
