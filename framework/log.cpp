#include <tuza/framework/log.h>

#include <tuza/sched/log.h>

#include <spdlog/async.h>
#include <spdlog/sinks/stdout_color_sinks.h>
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

}  // namespace

Logging::Logging() {
  spdlog::init_thread_pool(kQueuedLinesMax, 1);
  auto sink = std::make_shared<spdlog::sinks::stderr_color_sink_mt>();
  auto logger = std::make_shared<spdlog::async_logger>("", std::move(sink), spdlog::thread_pool(),
                                                       spdlog::async_overflow_policy::overrun_oldest);
  spdlog::set_default_logger(std::move(logger));
  set_log_sink(&to_spdlog);
}

Logging::~Logging() {
  set_log_sink(nullptr);
  spdlog::shutdown();
}

}  // namespace tuza
