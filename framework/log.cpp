#include <tuza/framework/log.h>

#include <tuza/framework/log/current.h>
#include <tuza/framework/log/line.h>
#include <tuza/framework/log/sinks.h>
#include <tuza/sched/detail/keep_for_ever.h>
#include <tuza/sched/log.h>
#include <tuza/sched/rt/base/check.h>

#include <spdlog/sinks/sink.h>
#include <spdlog/spdlog.h>

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

namespace tuza {
namespace {

constexpr std::chrono::milliseconds kEndTime{1000};

struct NamedLevel {
  std::string_view name;
  spdlog::level::level_enum level;
};
constexpr std::array<NamedLevel, 6> kLevels{{{"trace", spdlog::level::trace},
                                             {"debug", spdlog::level::debug},
                                             {"info", spdlog::level::info},
                                             {"warning", spdlog::level::warn},
                                             {"error", spdlog::level::err},
                                             {"off", spdlog::level::off}}};

std::atomic<logging::LineQueue*> g_queue{nullptr};
std::atomic<std::uint64_t> g_dropped{0};  // lines dropped by the queues of all Loggings
std::atomic<int> g_level{spdlog::level::info};

std::optional<spdlog::level::level_enum> level_named(std::string_view name) {
  for (const NamedLevel& known : kLevels) {
    if (known.name == name) return known.level;
  }
  return std::nullopt;
}

std::string_view name_of(spdlog::level::level_enum level) {
  for (const NamedLevel& known : kLevels) {
    if (known.level == level) return known.name;
  }
  return "error";  // spdlog's "critical"
}

// Longer messages are cut. A message of this size still fits into one line of the queue after escaping.
constexpr std::size_t kMessageBytesMax = 8 << 10;

// Without a Logging the message goes to standard error, so that messages at the end of the process are not lost.
void write_message(std::int64_t ns, std::string_view level, std::string_view text) {
  logging::LineQueue* const queue = logging::current_queue();
  logging::Line line(queue == nullptr ? logging::Form::kConsole : queue->form(), ns, level);
  line.message(text.substr(0, kMessageBytesMax));
  int tries = 5;
  if (queue == nullptr) {
    logging::write_patiently(2, line.finish(), tries);
  } else {
    queue->push(line.finish());
  }
}

// The spdlog sink that pushes into the current queue. Called on the logging thread or goroutine.
class QueueSink final : public spdlog::sinks::sink {
 public:
  void log(const spdlog::details::log_msg& message) override {
    const auto since = std::chrono::nanoseconds(message.time.time_since_epoch());
    write_message(since.count(), name_of(message.level), {message.payload.data(), message.payload.size()});
  }
  void flush() override {}
  // Ignored: Tuza determines the format of lines.
  void set_pattern(const std::string&) override {}
  void set_formatter(std::unique_ptr<spdlog::formatter>) override {}
};

// One logger for all Loggings. It is never freed: goroutines that tuza::run left behind may still use it.
const std::shared_ptr<spdlog::logger>& logger() {
  static const auto* const kept =
      new auto(std::make_shared<spdlog::logger>("", std::make_shared<QueueSink>()));
  return *kept;
}

constexpr auto level_of(LogLevel level) {
  constexpr std::array kOf{spdlog::level::info, spdlog::level::warn, spdlog::level::err};
  return kOf[static_cast<std::size_t>(level)];
}

void from_runtime(LogLevel level, std::string_view line) {
  if (logging::wants(level)) write_message(logging::wall_now_ns(), name_of(level_of(level)), line);
}

Result<void> begin(logging::Output output, const LogOptions& options) {
  if (g_queue.load() != nullptr) rt::fatal("a second Logging");
  // Never freed: goroutines that tuza::run left behind may still use the queue.
  auto& queue = keep_for_ever<logging::LineQueue>(
      std::move(output), options.json ? logging::Form::kJson : logging::Form::kConsole, options.queue_lines,
      g_dropped);
  if (Result<void> started = queue.start(); !started) return started;
  if (spdlog::default_logger() != logger()) spdlog::set_default_logger(logger());
  g_queue.store(&queue);
  set_log_level(options.level);
  set_log_sink(&from_runtime);
  return {};
}

}  // namespace

namespace logging {

LineQueue* current_queue() { return g_queue.load(std::memory_order_acquire); }
bool wants(LogLevel level) { return level_of(level) >= g_level.load(std::memory_order_relaxed); }

}  // namespace logging

Logging::Logging() {
  if (const Result<void> begun = begin(logging::Output(2), {}); !begun) {
    throw std::system_error(begun.error().code(), std::string(begun.error().op()));
  }
}

Result<std::unique_ptr<Logging>> Logging::open(const LogOptions& options) {
  Result<logging::Output> output =
      options.file == "stderr" ? logging::Output(2) : logging::Output::open(options.file);
  if (!output) return std::unexpected(output.error());
  if (const Result<void> begun = begin(std::move(*output), options); !begun) {
    return std::unexpected(begun.error());
  }
  return std::unique_ptr<Logging>(new Logging(Begun{}));
}

Logging::~Logging() {
  set_log_sink(nullptr);
  g_queue.exchange(nullptr)->stop(kEndTime);
}

LogSinkHandle add_log_sink(std::function<void(std::string_view)> sink) {
  return logging::add_sink(std::move(sink));
}
void remove_log_sink(LogSinkHandle sink) { logging::remove_sink(sink); }

bool set_log_level(std::string_view level) {
  const std::optional<spdlog::level::level_enum> known = level_named(level);
  if (!known) return false;
  logger()->set_level(*known);
  g_level.store(*known, std::memory_order_relaxed);
  return true;
}

Result<void> reopen_log() {
  logging::LineQueue* queue = logging::current_queue();
  return queue == nullptr ? Result<void>{} : queue->reopen();
}

bool drain_log(std::chrono::milliseconds limit) {
  logging::LineQueue* queue = logging::current_queue();
  return queue == nullptr || queue->drain(limit);
}

std::uint64_t log_lines_dropped() { return g_dropped.load(std::memory_order_relaxed); }

}  // namespace tuza
