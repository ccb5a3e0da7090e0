// The allocator of Descriptors: slabs that are never unmapped, and two free lists: a descriptor in memory never becomes one
// of the system, whose late events would wake goroutines that do not wait for the poller.
//
// Owned by the process, not by a runtime: a connection that outlives its runtime must still find its
// descriptor. Thread-safe. Blocks the M for a few instructions, occasionally for an mmap.
#pragma once

#include <tuza/netpoll/poll/descriptor.h>

namespace tuza::net {

class DescriptorPool {
 public:
  // An unused descriptor; null when the system has no memory.
  static Descriptor* take(bool in_memory = false);
  static void put(Descriptor* descriptor);
  // The descriptor with this index; null if none was ever made.
  static Descriptor* at(std::uint32_t index);
};

}  // namespace tuza::net
