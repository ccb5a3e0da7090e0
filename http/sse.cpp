#include <tuza/http/sse.h>

#include <tuza/http/method.h>
#include <tuza/sched/detail/clock_source.h>
#include <tuza/sched/detail/lock_guard.h>
#include <tuza/sched/detail/thread_annotations.h>
#include <tuza/sched/sync/mutex.h>
#include <tuza/sched/time/after_func.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>

namespace tuza::http {
namespace {

// A field whose value has no line end.
void append_field(std::string& out, std::string_view name, std::string_view value) {
  out.append(name).append(": ").append(value).append("\n");
}

void append_event(std::string& out, const Event& event) {
  if (event.event.find_first_of("\r\n") != std::string_view::npos) {
    throw std::invalid_argument("the type of an event has no line ends");
  }
  if (event.id.find_first_of(std::string_view("\r\n\0", 3)) != std::string_view::npos) {
    throw std::invalid_argument("the id of an event has no line ends and no NUL");
  }
  if (!event.id.empty()) append_field(out, "id", event.id);
  if (!event.event.empty()) append_field(out, "event", event.event);
  if (event.retry)
    append_field(out, "retry", std::to_string(std::max<std::int64_t>(0, event.retry->count())));
  // Each line is a field. A client takes "\r\n", "\n" and "\r" for the end of a line, and gives "\n" to the page.
  for (std::string_view rest = event.data;;) {
    const std::size_t end = rest.find_first_of("\r\n");
    append_field(out, "data", rest.substr(0, end));
    if (end == std::string_view::npos) break;
    rest.remove_prefix(end + (rest.substr(end).starts_with("\r\n") ? 2 : 1));
  }
  out += '\n';
}

}  // namespace

class EventStream::Impl {
 public:
  Impl(Request& req, ResponseWriter& res, const EventStreamOptions& options)
      : req_(req),
        res_(res),
        options_(options),
        ended_(with_cancel(req.until_shutdown())),
        failed_(req.method() == Method::kHead) {
    if (options.write_timeout.count() <= 0) throw std::invalid_argument("sse: write_timeout is above 0");
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() {
    {
      const LockGuard lock(lifeline_->mutex);  // waits for a heartbeat that is being sent
      lifeline_->impl = nullptr;
    }
    heartbeat_.stop();
  }

  void begin() {
    if (!res_.header("Content-Type")) res_.set_header("Content-Type", "text/event-stream");
    if (!res_.header("Cache-Control")) res_.set_header("Cache-Control", "no-store");
    res_.set_header("X-Accel-Buffering", "no");  // nginx collects responses otherwise
    if (req_.method() == Method::kHead) {
      (void)res_.flush();  // as GET, whose body has no length
      return ended_.cancel();
    }
    {
      const LockGuard lock(mutex_);
      // A comment, so that the head leaves, and the page knows that the stream is open.
      (void)put(Context::background(), ":\n\n");
    }
    if (options_.heartbeat.count() <= 0) return;
    const LockGuard held(lifeline_->mutex);
    lifeline_->impl = this;
    heartbeat_ = after_func(options_.heartbeat, [lifeline = lifeline_] {
      const LockGuard lock(lifeline->mutex);
      if (lifeline->impl != nullptr) lifeline->impl->beat();
    });
  }

  Result<void> send(const Context& ctx, const Event& event) TUZA_NO_THREAD_SAFETY_ANALYSIS {
    if (Result<void> locked = mutex_.lock(ctx); !locked) return locked;
    const LockGuard lock(mutex_, std::adopt_lock);
    text_.clear();
    append_event(text_, event);
    Result<void> sent = put(ctx, text_);
    if (text_.capacity() > kKeptBytes) std::string().swap(text_);
    return sent;
  }

  [[nodiscard]] const Context& context() const { return ended_.ctx(); }
  [[nodiscard]] std::optional<std::string_view> last_event_id() const { return req_.header("Last-Event-ID"); }

 private:
  static constexpr std::size_t kKeptBytes = 4 << 10;
  struct Lifeline {
    Mutex mutex;
    Impl* impl TUZA_GUARDED_BY(mutex) = nullptr;
  };

  Result<void> put(const Context& ctx, std::string_view text) TUZA_REQUIRES(mutex_) {
    if (failed_) return std::unexpected(Error(Errc::kClosed, "sse"));
    if (Result<void> going_on = ctx.check(); !going_on) return going_on;
    const auto [limited, cancel] = with_timeout(ctx, options_.write_timeout);
    Result<void> sent = res_.write(limited, text);
    if (sent) sent = res_.flush(limited);
    last_ns_ = rt::clock_coarse_ns();
    if (!sent) {
      failed_ = true;
      ended_.cancel(sent.error());
    }
    return sent;
  }

  // By the timer: an exception would end the process.
  void beat() {
    const std::int64_t interval_ns = std::chrono::nanoseconds(options_.heartbeat).count();
    std::int64_t next_ns = interval_ns;
    try {
      const LockGuard lock(mutex_);
      const std::int64_t idle_ns = rt::clock_coarse_ns() - last_ns_;
      if (idle_ns < interval_ns) {
        next_ns = interval_ns - idle_ns;
      } else if (!put(Context::background(), ":\n\n")) {
        return;
      }
    } catch (const std::exception&) {
      return ended_.cancel(Error(Errc::kOther, "sse", "a heartbeat has failed"));
    }
    heartbeat_.reset(std::chrono::nanoseconds(next_ns));
  }

  Request& req_;
  ResponseWriter& res_;
  const EventStreamOptions options_;
  const CancellableContext ended_;

  Mutex mutex_;  // held while something is sent
  bool failed_ TUZA_GUARDED_BY(mutex_);
  std::int64_t last_ns_ TUZA_GUARDED_BY(mutex_) = 0;  // when something was sent
  std::string text_ TUZA_GUARDED_BY(mutex_);

  const std::shared_ptr<Lifeline> lifeline_ = std::make_shared<Lifeline>();
  DelayedCall heartbeat_;
};

EventStream::EventStream(Request& req, ResponseWriter& res, const EventStreamOptions& options)
    : impl_(std::make_unique<Impl>(req, res, options)) {
  impl_->begin();
}
EventStream::~EventStream() = default;

Result<void> EventStream::send(const Context& ctx, const Event& event) { return impl_->send(ctx, event); }
const Context& EventStream::context() const { return impl_->context(); }
std::optional<std::string_view> EventStream::last_event_id() const { return impl_->last_event_id(); }

}  // namespace tuza::http
