// The owners of what a Conn and a Listener consist of.
#pragma once

#include <memory>

namespace tuza::net {

class Descriptor;
class Transport;
class UnixSocketFile;

namespace detail {

struct ConnParts;
struct Dispose {
  void operator()(Descriptor* descriptor) const;
  void operator()(Transport* transport) const;
  void operator()(UnixSocketFile* file) const;
};
using DescriptorOwner = std::unique_ptr<Descriptor, Dispose>;
using TransportOwner = std::unique_ptr<Transport, Dispose>;
using UnixSocketFileOwner = std::unique_ptr<UnixSocketFile, Dispose>;

}  // namespace detail
}  // namespace tuza::net
