// Where Descriptors live: slabs that are never unmapped, and a free list.
//
// Belongs to the process, not to a runtime: a connection that outlives its runtime must still find its
// descriptor. Thread-safe. Blocks the M for a few instructions, at times for a mmap.
#pragma once

#include <tuza/netpoll/poll/descriptor.h>

namespace tuza::net {

class DescriptorPool {
 public:
  // A descriptor that nobody uses; null when the system has no memory.
  static Descriptor* take();
  static void put(Descriptor* descriptor);
  // By index; null if there was never one.
  static Descriptor* at(std::uint32_t index);
};

}  // namespace tuza::net
