// What a runtime needs of its process, beside memory and threads.
//
// - Descriptors 0 to 2 are open. If the program was started without one, the next socket would get its
//   number, and what is printed on standard error would go to a client. Closed ones become /dev/null (Go
//   does the same), for good.
// - SIGPIPE is ignored, unless the program has a handler of its own: standard error may be a pipe whose
//   reader has gone, and a server does not die of that. Programs started by exec inherit it.
#pragma once

#include <signal.h>

namespace tuza::rt {

// The first of these, for who opens descriptors before there is a runtime.
void open_standard_descriptors();

class ProcessSetup {
 public:
  ProcessSetup();
  ~ProcessSetup();  // SIGPIPE is what it was
  ProcessSetup(const ProcessSetup&) = delete;
  ProcessSetup& operator=(const ProcessSetup&) = delete;

 private:
  struct sigaction before_{};
  bool ignored_ = false;
};

}  // namespace tuza::rt
