#include <tuza/netpoll/signals.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <tuza/netpoll/poll/descriptor.h>
#include <tuza/sched/arch/last_error.h>
#include <tuza/sched/arch/sanitizer.h>
#include <tuza/sched/arch/syscall.h>
#include <tuza/sched/rt/base/fork.h>

#include <atomic>
#include <cerrno>
#include <utility>
#include <vector>

namespace tuza::net {
namespace {

std::atomic<bool> g_open{false};
std::atomic<int> g_pipe_write{-1};  // read by the signal handler
std::atomic<int> g_handlers{0};     // handlers currently running

void on_signal(int number) {
  // seq_cst, against stop_handlers(): either stop_handlers() sees this handler in the count, or the handler
  // sees that the pipe is gone.
  g_handlers.fetch_add(1, std::memory_order_seq_cst);
  const auto byte = static_cast<unsigned char>(number);
  // A full pipe holds thousands of unread signals: losing one more does not matter.
  const int fd = g_pipe_write.load(std::memory_order_seq_cst);
  if (fd >= 0) sys::invoke(SYS_write, fd, &byte, 1);
  g_handlers.fetch_sub(1, std::memory_order_release);
}

// After this call no handler writes into the pipe, so its descriptor number may be reused. (A handler runs to
// its end whatever the interrupted thread is doing, this thread included.)
void stop_handlers() {
  g_pipe_write.store(-1, std::memory_order_seq_cst);
  if (rt::is_forked_child()) return;  // handlers under way belong to the parent
  while (g_handlers.load(std::memory_order_seq_cst) != 0) sys::invoke(SYS_sched_yield);
}

}  // namespace

struct SignalSet::State {
  detail::DescriptorOwner reader;
  int write_fd = -1;
  std::vector<std::pair<int, struct sigaction>> before;
  std::atomic<bool> given_back{false};

  ~State() { give_back(); }

  // Restores the previous dispositions, except for signals that the program has since handled itself.
  void give_back() {
    if (given_back.exchange(true, std::memory_order_acq_rel)) return;
    for (auto& [number, action] : before) {
      struct sigaction now{};
      if (sigaction(number, nullptr, &now) == 0 && now.sa_handler == &on_signal)
        sigaction(number, &action, nullptr);
    }
    stop_handlers();
    // Close the reader first: a waiting wait() must return that the set is closed, not that the pipe has no
    // writer.
    if (reader.get() != nullptr) reader->close();
    if (write_fd >= 0) sys::invoke(SYS_close, write_fd);
    g_open.store(false, std::memory_order_release);
  }
};

SignalSet::SignalSet(std::unique_ptr<State> state) : state_(std::move(state)) {}
SignalSet::SignalSet(SignalSet&&) noexcept = default;
SignalSet::~SignalSet() = default;

Result<SignalSet> SignalSet::open(std::initializer_list<int> signals) {
  if (g_open.exchange(true, std::memory_order_acq_rel)) {
    return std::unexpected(Error::from_errno(EBUSY, "signals"));
  }
  auto state = std::make_unique<State>();
  int fds[2];
  const long error = sys::invoke(SYS_pipe2, fds, O_NONBLOCK | O_CLOEXEC);
  if (error < 0) return std::unexpected(Error::from_errno(static_cast<int>(-error), "signals"));
  state->write_fd = fds[1];
  Result<Descriptor*> reader = Descriptor::open(fds[0], "signals");
  if (!reader) return std::unexpected(reader.error());
  state->reader.reset(*reader);
  g_pipe_write.store(fds[1], std::memory_order_release);
  struct sigaction action{};
  action.sa_handler = &on_signal;
  action.sa_flags = SA_RESTART | SA_ONSTACK;  // goroutine stacks are small
  // A futex wait must be interrupted, not restarted: sys::invoke() says why.
  if constexpr (rt::kTsan) action.sa_flags = SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  for (const int number : signals) {
    struct sigaction before{};
    if (::sigaction(number, &action, &before) != 0) {
      return std::unexpected(Error::from_errno(last_error(), "signals"));
    }
    state->before.emplace_back(number, before);
  }
  return SignalSet(std::move(state));
}

Result<int> SignalSet::wait() { return wait_within(nullptr); }
Result<int> SignalSet::wait(const Context& ctx) { return wait_within(&ctx); }

Result<int> SignalSet::wait_within(const Context* ctx) {
  std::byte number{};
  const Result<std::size_t> n = state_->reader->read(std::span(&number, 1), ctx);
  if (!n) return std::unexpected(n.error());
  if (*n == 0) return std::unexpected(Error(Errc::kClosed, "read"));  // the read overlapped with close()
  return std::to_integer<int>(number);
}

void SignalSet::close() { state_->give_back(); }

}  // namespace tuza::net
