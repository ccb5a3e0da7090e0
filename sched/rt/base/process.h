// Process-wide state that a runtime needs, apart from memory and threads.
//
// - Descriptors 0 to 2 are open. If the program was started with one of them closed, the next socket would get
//   its number, and messages to standard error would go to a client. Closed descriptors become /dev/null, as in
//   Go, and stay so after the run.
// - SIGPIPE is ignored, unless the program has its own handler: standard error may be a pipe without a reader,
//   which must not end a server. Programs started by exec inherit the setting.
#pragma once

#include <signal.h>

namespace tuza::rt {

// Opens descriptors 0 to 2. For callers that open descriptors before there is a runtime.
void open_standard_descriptors();

class ProcessSetup {
 public:
  ProcessSetup();
  ~ProcessSetup();  // restores SIGPIPE
  ProcessSetup(const ProcessSetup&) = delete;
  ProcessSetup& operator=(const ProcessSetup&) = delete;

 private:
  struct sigaction before_{};
  bool ignored_ = false;
};

}  // namespace tuza::rt
