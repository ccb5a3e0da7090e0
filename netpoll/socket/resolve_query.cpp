#include <tuza/netpoll/socket/resolve_query.h>

#include <netdb.h>
#include <sys/socket.h>
#include <tuza/sched/arch/last_error.h>
#include <tuza/sched/blocking.h>
#include <tuza/sched/detail/keep_for_ever.h>
#include <tuza/sched/detail/lock_guard.h>
#include <tuza/sched/detail/thread_mutex.h>
#include <tuza/sched/go.h>
#include <tuza/sched/sync/context.h>
#include <tuza/sched/sync/detail/run_mark.h>
#include <tuza/sched/sync/semaphore.h>
#include <tuza/sched/sync/shared_chan.h>

#include <cerrno>
#include <cstddef>
#include <memory>
#include <new>
#include <optional>
#include <utility>

namespace tuza::net {
namespace {

using Answer = Result<std::vector<Endpoint>>;

// The places for the queries of a run. Each run has places of its own: what a query holds that a run has left behind is
// never given back.
class Places {
 public:
  std::shared_ptr<Semaphore> of_this_run() {
    // Before the lock: a thread that its run has shut out gets no further than this call.
    const std::uint64_t run = rt::current_run();
    const LockGuard lock(mutex_);
    if (places_ == nullptr || run_ != run) {
      places_ = std::make_shared<Semaphore>(kQueriesMax);
      run_ = run;
    }
    return places_;
  }

 private:
  ThreadMutex mutex_;
  std::uint64_t run_ TUZA_GUARDED_BY(mutex_) = 0;  // that `places_` belong to
  std::shared_ptr<Semaphore> places_ TUZA_GUARDED_BY(mutex_);
};

// A place that is taken, until it is destroyed. A moved-from one is none.
class Place {
 public:
  // Parks, if it has to wait.
  static Result<Place> take(const Context& ctx) {
    static Places& all = keep_for_ever<Places>();
    std::shared_ptr<Semaphore> places = all.of_this_run();
    if (Result<void> taken = places->acquire(ctx); !taken) return std::unexpected(taken.error());
    return Place(std::move(places));
  }
  Place(Place&&) = default;
  Place& operator=(Place&&) = delete;
  ~Place() {
    if (places_ != nullptr) places_->release();
  }

 private:
  explicit Place(std::shared_ptr<Semaphore> places) : places_(std::move(places)) {}

  std::shared_ptr<Semaphore> places_;
};

// `number` is errno, used if `code` refers to it.
Error resolver_error(int code, int number, const std::string& text) {
  if (code == EAI_SYSTEM) return Error::from_errno(number, "resolve", text);
  if (code == EAI_MEMORY) return Error::from_errno(ENOMEM, "resolve", text);
  // Only these say something about the name. Whatever else there is, or a C library adds, is a failure of the resolver or
  // of its servers, and the name may exist.
  const bool unknown = code == EAI_NONAME || code == EAI_NODATA || code == EAI_ADDRFAMILY;
  return Error(unknown ? Errc::kNoSuchHost : Errc::kResolverFailed, "resolve", text);
}

// Without AI_ADDRCONFIG, which hides addresses that /etc/hosts names from a machine that has only loopback addresses of
// that version; the resolver puts addresses that cannot be reached last.
Answer ask(const NameQuery& query) {
  struct addrinfo hints{};
  hints.ai_family = query.family;
  hints.ai_socktype = SOCK_STREAM;
  struct addrinfo* list = nullptr;
  int code = 0;
  int number = 0;
  {
    const BlockingCall asking(CallLength::kLong);
    code = getaddrinfo(query.host.c_str(), nullptr, &hints, &list);
    if (code == EAI_SYSTEM) number = last_error();
  }
  if (code != 0) return std::unexpected(resolver_error(code, number, query.text));
  const std::unique_ptr<struct addrinfo, decltype(&freeaddrinfo)> owner(list, &freeaddrinfo);
  std::vector<Endpoint> all;
  for (const struct addrinfo* at = list; at != nullptr; at = at->ai_next) {
    const std::optional<Endpoint> endpoint = from_sockaddr(at->ai_addr, at->ai_addrlen);
    if (endpoint) all.emplace_back(endpoint->address(), query.port);
  }
  if (all.empty()) return std::unexpected(Error(Errc::kNoSuchHost, "resolve", query.text));
  return all;
}

// For a goroutine, which an exception must not leave.
Answer ask_on_goroutine(NameQuery& query) {
  try {
    return ask(query);
  } catch (const std::bad_alloc&) {
    return std::unexpected(Error::from_errno(ENOMEM, "resolve", std::move(query.text)));
  }
}

}  // namespace

Result<std::vector<Endpoint>> query_resolver(const Context& ctx, NameQuery query) {
  // The resolver's modules are other people's code, which may have been tried on the stacks of threads only.
  constexpr std::size_t kStackBytes = std::size_t{1} << 20;
  Result<Place> place = Place::take(ctx);
  if (!place) return std::unexpected(place.error());
  if (ctx.event() == nullptr) return ask(query);
  // With room for the answer, so that a query that has been abandoned does not wait for a receiver.
  const SharedChan<Answer> answers = make_chan<Answer>(1);
  const Result<void> started = try_go({.name = "resolve", .stack_bytes = kStackBytes},
                                      [place = *std::move(place), query = std::move(query),
                                       answers]() mutable { answers.send(ask_on_goroutine(query)); });
  if (!started) return std::unexpected(started.error());
  Result<std::optional<Answer>> answer = answers.recv(ctx);
  if (!answer) return std::unexpected(answer.error());
  return **std::move(answer);
}

}  // namespace tuza::net
