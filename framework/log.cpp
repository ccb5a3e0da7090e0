#include <tuza/framework/log.h>

#include <tuza/framework/stderr_sink.h>
#include <tuza/sched/log.h>

#include <signal.h>
#include <spdlog/async.h>
#include <spdlog/spdlog.h>

#include <memory>

namespace tuza {
namespace {

void to_spdlog(LogLevel level, std::string_view line) {
  switch (level) {
    case LogLevel::kInfo: spdlog::info("{}", line); return;
    case LogLevel::kWarning: spdlog::warn("{}", line); return;
    case LogLevel::kError: spdlog::error("{}", line); return;
  }
}

// A write to a pipe that was closed must not end the process, before and after tuza::run either.
void block_sigpipe() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

}  // namespace

Logging::Logging() {
  spdlog::init_thread_pool(kQueuedLinesMax, 1, &block_sigpipe);
  auto logger = std::make_shared<spdlog::async_logger>("", make_stderr_sink(), spdlog::thread_pool(),
                                                       spdlog::async_overflow_policy::overrun_oldest);
  spdlog::set_default_logger(std::move(logger));
  set_log_sink(&to_spdlog);
}

Logging::~Logging() {
  set_log_sink(nullptr);
  spdlog::shutdown();
}

}  // namespace tuza
