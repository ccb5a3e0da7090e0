#include <tuza/http/testing_upstreams.h>

#include <tuza/http/serve/body_filter.h>
#include <tuza/http/testing_server.h>
#include <tuza/http/wire/chars.h>
#include <tuza/sched/detail/lock_guard.h>
#include <tuza/sched/rt/base/check.h>
#include <tuza/sched/time/sleep.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <exception>
#include <span>
#include <stdexcept>
#include <utility>

namespace tuza::http::testing {
namespace {

// A body up to this length is read before the handler runs.
constexpr std::uint64_t kReadAheadMax = 64 << 10;

// What a handler reads of a body, and what has been read ahead for it.
class SeenBody final : public BodySource {
 public:
  using BodySource::BodySource;

  // False: the body is broken, and the server says so.
  bool read_ahead() {
    std::array<std::byte, 4096> piece;
    for (;;) {
      const Result<std::size_t> n = read_below(piece, nullptr);
      if (!n) return false;
      if (*n == 0) return true;
      append(std::span(piece).first(*n));
    }
  }
  Result<std::size_t> read(std::span<std::byte> into, const Context* ctx) override {
    if (const std::size_t ahead = std::min(into.size(), text_.size() - passed_on_); ahead > 0) {
      std::memcpy(into.data(), text_.data() + passed_on_, ahead);
      passed_on_ += ahead;
      return ahead;
    }
    const Result<std::size_t> n = read_below(into, ctx);
    if (n) {
      append(into.first(*n));
      passed_on_ = text_.size();
    }
    return n;
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  void append(std::span<const std::byte> bytes) {
    text_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }

  std::string text_;
  std::size_t passed_on_ = 0;
};

HeaderFields fields_of(const Request& req) {
  HeaderFields fields;
  for (const auto& [name, value] : req.headers()) fields.emplace_back(name, value);
  return fields;
}

bool is_about_the_connection(std::string_view name) {
  constexpr std::array<std::string_view, 4> kNames{"Content-Length", "Transfer-Encoding", "Connection",
                                                   "Expect"};
  return std::ranges::any_of(kNames, [&](std::string_view one) { return equals_ignoring_case(one, name); });
}

}  // namespace

std::optional<std::string_view> SeenRequest::header(std::string_view name) const {
  for (const auto& [other, value] : headers) {
    if (equals_ignoring_case(other, name)) return value;
  }
  return std::nullopt;
}

// -- FakeUpstream

class FakeUpstream::Impl {
 public:
  // What is to happen to one request.
  struct Order {
    bool drop = false;
    std::size_t body_bytes = 0;  // of its answer
  };

  Impl(Handler handler, const FakeUpstreamsSetup& setup)
      : handler_(std::move(handler)),
        server_([this](Request& req, ResponseWriter& res) { serve(req, res); },
                {.server = setup.server, .buffer_bytes = setup.buffer_bytes, .leak_check = false}) {}

  [[nodiscard]] Result<net::Conn> dial(const Context& ctx) {
    {
      const LockGuard lock(mutex_);
      ++dials_;
      if (refusals_ > 0) {
        --refusals_;
        return std::unexpected(Error(refusal_, "dial", server_.address()));
      }
    }
    return server_.network().dial(ctx, server_.address());
  }
  void close() { (void)server_.close(); }

  mutable Mutex mutex_;
  std::vector<SeenRequest> requests_ TUZA_GUARDED_BY(mutex_);
  std::deque<Order> orders_ TUZA_GUARDED_BY(mutex_);
  std::chrono::nanoseconds delay_ TUZA_GUARDED_BY(mutex_){0};
  std::size_t dials_ TUZA_GUARDED_BY(mutex_) = 0;
  int refusals_ TUZA_GUARDED_BY(mutex_) = 0;
  std::error_code refusal_ TUZA_GUARDED_BY(mutex_);

 private:
  void serve(Request& req, ResponseWriter& res);
  void break_off(Request& req, ResponseWriter& res, const std::string& body, std::size_t body_bytes) const;

  const Handler handler_;
  Server server_;  // last: its requests use the rest
};

void FakeUpstream::Impl::serve(Request& req, ResponseWriter& res) {
  SeenBody body(req.exchange());
  const std::optional<std::uint64_t> length = req.content_length();
  if (length && *length <= kReadAheadMax && !body.read_ahead()) return;
  std::size_t index = 0;
  std::optional<Order> order;
  std::chrono::nanoseconds delay{};
  {
    const LockGuard lock(mutex_);
    index = requests_.size();
    requests_.push_back({.method = req.method(),
                         .target = std::string(req.target()),
                         .headers = fields_of(req),
                         .body = body.text()});
    if (!orders_.empty()) {
      order = orders_.front();
      orders_.pop_front();
    }
    delay = delay_;
  }
  if (delay.count() > 0 && !sleep_for(req.context(), delay)) return;
  // With a body that is still unread, the connection cannot be taken over.
  if (order && !body.read_ahead()) return;
  if (!order) {
    handler_(req, res);
  } else if (order->drop) {
    (void)res.hijack(502);  // the connection ends with the handler
  } else {
    break_off(req, res, body.text(), order->body_bytes);
  }
  const LockGuard lock(mutex_);
  requests_[index].body = body.text();
}

void FakeUpstream::Impl::break_off(Request& req, ResponseWriter& res, const std::string& body,
                                   std::size_t body_bytes) const {
  HeaderFields fields = fields_of(req);
  std::erase_if(fields, [](const auto& field) {
    return is_about_the_connection(field.first) || equals_ignoring_case(field.first, "Host");
  });
  fields.emplace_back("Host", req.host());
  const std::string line = std::string(req.method_name()) + " " + std::string(req.target());
  const CallResult whole =
      call_handler(handler_, line, {.headers = std::move(fields), .body = body, .context = req.context()});
  std::string answer = "HTTP/1.1 " + std::to_string(whole.status) + " \r\n";
  for (const auto& [name, value] : whole.headers) {
    if (!is_about_the_connection(name)) answer.append(name).append(": ").append(value).append("\r\n");
  }
  answer += "Content-Length: " + std::to_string(whole.body.size()) + "\r\n";
  if (!whole.body.empty())
    answer.append("\r\n").append(whole.body, 0, std::min(body_bytes, whole.body.size() - 1));
  if (Result<HijackedStream> stream = res.hijack(whole.status)) (void)stream->write(answer);
}

FakeUpstream::FakeUpstream(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
FakeUpstream::~FakeUpstream() = default;

std::vector<SeenRequest> FakeUpstream::requests() const {
  const LockGuard lock(impl_->mutex_);
  return impl_->requests_;
}

std::size_t FakeUpstream::dials() const {
  const LockGuard lock(impl_->mutex_);
  return impl_->dials_;
}

void FakeUpstream::refuse_dials(int times, std::error_code code) {
  const LockGuard lock(impl_->mutex_);
  impl_->refusals_ = times;
  impl_->refusal_ = code;
}

void FakeUpstream::drop_requests(int times) {
  const LockGuard lock(impl_->mutex_);
  for (int i = 0; i < times; ++i) impl_->orders_.push_back({.drop = true});
}

void FakeUpstream::break_off(std::size_t body_bytes, int times) {
  const LockGuard lock(impl_->mutex_);
  for (int i = 0; i < times; ++i) impl_->orders_.push_back({.body_bytes = body_bytes});
}

void FakeUpstream::delay(std::chrono::nanoseconds delay) {
  const LockGuard lock(impl_->mutex_);
  impl_->delay_ = delay;
}

// -- FakeUpstreams

FakeUpstreams::FakeUpstreams(FakeUpstreamsSetup setup)
    : setup_(std::move(setup)), exceptions_(std::uncaught_exceptions()) {
  if (setup_.leak_check) leaks_.emplace();
}

FakeUpstreams::~FakeUpstreams() {
  end();
  if (told_ || std::uncaught_exceptions() > exceptions_) return;
  if (const std::string hosts = unknown_hosts(); !hosts.empty())
    rt::fatal("http::testing::FakeUpstreams: " + hosts);
}

void FakeUpstreams::end() {
  if (std::exchange(ended_, true)) return;
  std::vector<FakeUpstream*> all;
  {
    const LockGuard lock(mutex_);
    for (auto& [origin, upstream] : upstreams_) all.push_back(upstream.get());
  }
  // Without the lock: a handler that has not returned may be dialling another upstream.
  for (FakeUpstream* upstream : all) upstream->impl_->close();
}

std::string FakeUpstreams::close() {
  end();
  told_ = true;
  return unknown_hosts() + (leaks_ ? leaks_->report() : std::string());
}

std::string FakeUpstreams::unknown_hosts() const {
  const LockGuard lock(mutex_);
  std::string lines;
  for (const std::string& origin : unknown_) lines += "asked for " + origin + ", which has not been added\n";
  return lines;
}

FakeUpstream& FakeUpstreams::add(std::string_view origin, Handler handler) {
  const Result<Url> url = Url::parse(origin);
  if (!url || url->target != "/")
    throw std::invalid_argument("FakeUpstreams: " + std::string(origin) +
                                " is no origin, as in http://host:port");
  if (handler == nullptr) throw std::invalid_argument("FakeUpstreams: the handler is empty");
  std::unique_ptr<FakeUpstream> upstream(
      new FakeUpstream(std::make_unique<FakeUpstream::Impl>(std::move(handler), setup_)));
  const LockGuard lock(mutex_);
  const auto [at, added] = upstreams_.try_emplace(url->origin(), std::move(upstream));
  if (!added) throw std::invalid_argument("FakeUpstreams: " + url->origin() + " has been added before");
  return *at->second;
}

ClientOptions FakeUpstreams::client_options(ClientOptions options) {
  options.dial = options.dial_tls = [this](const Context& ctx, const Url& url) { return dial(ctx, url); };
  return options;
}

Result<net::Conn> FakeUpstreams::dial(const Context& ctx, const Url& url) {
  FakeUpstream* upstream = nullptr;
  {
    const LockGuard lock(mutex_);
    if (const auto at = upstreams_.find(url.origin()); at != upstreams_.end()) {
      upstream = at->second.get();
    } else {
      unknown_.push_back(url.origin());
    }
  }
  if (upstream != nullptr) return upstream->impl_->dial(ctx);
  return std::unexpected(
      Error(Errc::kNoSuchHost, "dial", url.origin() + " has not been added to FakeUpstreams"));
}

}  // namespace tuza::http::testing
