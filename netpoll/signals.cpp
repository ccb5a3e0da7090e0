#include <tuza/netpoll/signals.h>

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <tuza/netpoll/detail/end_of_run.h>
#include <tuza/netpoll/detail/owners.h>
#include <tuza/netpoll/poll/descriptor.h>
#include <tuza/sched/arch/calls.h>
#include <tuza/sched/arch/last_error.h>
#include <tuza/sched/arch/sanitizer.h>
#include <tuza/sched/rt/base/fork.h>
#include <tuza/sched/rt/base/note.h>
#include <tuza/sched/rt/base/raw_mutex.h>
#include <tuza/sched/rt/base/thread_limit.h>
#include <tuza/sched/rt/enter.h>
#include <tuza/sched/rt/idle/machine_thread.h>
#include <tuza/sched/time/sleep.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <utility>
#include <vector>

namespace tuza::net {
namespace {

constexpr std::size_t kSignals = 65;  // numbers from 1

std::atomic<bool> g_open{false};
std::atomic<int> g_pipe_write{-1};  // read by the signal handler
std::atomic<int> g_writers{0};      // calls of wake_waiter() under way, mostly in handlers
std::atomic<long> g_process{0};     // to which the set belongs

// How often each signal has come and was not returned. A handler adds to the count, then writes a byte into the pipe. A
// waiter subtracts, or reads a byte and looks again. A full pipe takes no byte, but makes a waiter look, too.
std::array<std::atomic<std::uint32_t>, kSignals> g_counts{};
// The dispositions before. Written before the handler is installed.
std::array<struct sigaction, kSignals> g_before{};

// Wakes a waiter, for a signal that has come if there is a number. Outside of handlers call it inside the runtime:
// stop_handlers() waits for the end of the call.
void wake_waiter(int number = 0) {
  // seq_cst, against stop_handlers(): either stop_handlers() sees this call in the count, or the call sees that the pipe is
  // gone.
  g_writers.fetch_add(1, std::memory_order_seq_cst);
  if (const int fd = g_pipe_write.load(std::memory_order_seq_cst); fd >= 0) {
    // relaxed: the pipe orders it
    if (number != 0) g_counts[static_cast<std::size_t>(number)].fetch_add(1, std::memory_order_relaxed);
    const char byte = 0;
    sys::write(fd, &byte, 1);
  }
  g_writers.fetch_sub(1, std::memory_order_release);
}

// In a child that has not called exec yet. Its sender means the child: the signal does there what it did before the set was
// opened, once this handler has returned. (The child of vfork() has dispositions of its own, too.)
void act_as_before(int number) {
  const struct sigaction before = g_before[static_cast<std::size_t>(number)];
  sigaction(number, &before, nullptr);
  sys::kill(sys::getpid(), number);
}

void on_signal(int number) {
  const bool in_child = sys::getpid() != g_process.load(std::memory_order_relaxed);
  if (in_child || rt::is_forked_child()) return act_as_before(number);
  wake_waiter(number);
}

// After this call nobody writes into the pipe, so its descriptor number may be reused. (A handler runs to
// its end whatever the interrupted thread is doing, this thread included.)
void stop_handlers() {
  g_pipe_write.store(-1, std::memory_order_seq_cst);
  if (rt::is_forked_child()) return;  // handlers under way belong to the parent
  while (g_writers.load(std::memory_order_seq_cst) != 0) sys::sched_yield();
}

}  // namespace

struct SignalSet::State {
  // Receives the signals that all other threads block: Ms have the mask of the thread that called run().
  class Receiver {
   public:
    // 0 or an errno. `signals` has the blocked ones.
    int start(const sigset_t& signals) {
      signals_ = signals;
      const int refused = rt::start_helper_thread<&Receiver::main>(thread_, "tuza-signals", this);
      running_ = refused == 0;
      return refused;
    }
    void stop() {
      if (!std::exchange(running_, false) || rt::is_forked_child()) return;
      note_.wake();
      rt::join_helper_thread(thread_);
    }

   private:
    static void* main(void* argument) {
      auto& self = *static_cast<Receiver*>(argument);
      pthread_sigmask(SIG_UNBLOCK, &self.signals_, nullptr);
      self.note_.sleep();
      return nullptr;
    }

    sigset_t signals_{};
    pthread_t thread_{};
    rt::Note note_;
    bool running_ = false;
  };

  detail::DescriptorOwner reader;
  int write_fd = -1;
  std::vector<std::pair<int, struct sigaction>> before;
  Receiver receiver;
  std::atomic<bool> given_back{false};
  std::atomic<std::size_t> last_returned{0};  // relaxed: only a hint where to look first
  bool swallows = false;  // after the run: written by the opener, read when no goroutine runs

  // The state of the set that is open, for the end of the run. The destructor of a state may run on another thread then, and
  // waits until the end of the run has done with the state.
  static inline rt::RawMutex open_mutex;
  static inline State* open_one TUZA_GUARDED_BY(open_mutex) = nullptr;

  ~State() {
    forget();
    give_back();
  }

  void forget() {
    const rt::Enter rt;
    const LockGuard lock(open_mutex);
    if (open_one == this) open_one = nullptr;
  }

  void give_back(bool with_dispositions = true) {
    if (given_back.exchange(true, std::memory_order_acq_rel)) return;
    receiver
        .stop();  // first: what it does not block must not have the disposition of a signal that was blocked
    if (with_dispositions) restore_dispositions();
    stop_handlers();
    // Close the reader first: a waiting wait() must return that the set is closed, not that the pipe has no
    // writer.
    if (reader.get() != nullptr) reader->close();
    if (write_fd >= 0) sys::close(write_fd);
    g_open.store(false, std::memory_order_release);
  }

  // Except for signals that the program has since handled itself.
  void restore_dispositions() const {
    for (const auto& [number, action] : before) {
      struct sigaction now{};
      if (sigaction(number, nullptr, &now) == 0 && now.sa_handler == &on_signal)
        sigaction(number, &action, nullptr);
    }
  }

  int install(std::initializer_list<int> signals);
  int receive_blocked();
  // A signal that has come, not the last one again if there are others; 0: none.
  int take();
  // Signals that found the pipe full have left no byte for other waiters.
  void pass_on();
};

void give_back_signals() {
  using State = SignalSet::State;
  const LockGuard lock(State::open_mutex);
  State* const state = State::open_one;
  if (state == nullptr) return;
  state->give_back(!state->swallows);
  State::open_one = nullptr;
}

void swallow_after_the_run(SignalSet& signals) { signals.state_->swallows = true; }

// 0 or an errno.
int SignalSet::State::install(std::initializer_list<int> signals) {
  struct sigaction action{};
  action.sa_handler = &on_signal;
  action.sa_flags = SA_RESTART | SA_ONSTACK;  // goroutine stacks are small
  // A futex wait must be interrupted, not restarted: sys::invoke() says why.
  if constexpr (rt::kTsan) action.sa_flags = SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  for (const int number : signals) {
    struct sigaction previous{};
    if (::sigaction(number, nullptr, &previous) != 0) return last_error();
    if (previous.sa_handler == &on_signal) {
      const auto named_before = [number](const auto& entry) { return entry.first == number; };
      if (std::ranges::any_of(before, named_before)) continue;
      previous = g_before[static_cast<std::size_t>(number)];  // an earlier run's set swallows it
    }
    g_before[static_cast<std::size_t>(number)] = previous;
    if (::sigaction(number, &action, nullptr) != 0) return last_error();
    before.emplace_back(number, previous);
  }
  return 0;
}

// 0 or an errno. The calling M has the signal mask of all Ms.
int SignalSet::State::receive_blocked() {
  sigset_t mask, blocked;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  sigemptyset(&blocked);
  bool any = false;
  for (const auto& entry : before) {
    if (sigismember(&mask, entry.first) != 1) continue;
    sigaddset(&blocked, entry.first);
    any = true;
  }
  return any ? receiver.start(blocked) : 0;
}

int SignalSet::State::take() {
  const std::size_t last = last_returned.load(std::memory_order_relaxed);
  for (std::size_t i = 1; i <= kSignals; ++i) {
    const std::size_t number = (last + i) % kSignals;
    std::uint32_t count = g_counts[number].load(std::memory_order_relaxed);
    while (count != 0) {
      if (!g_counts[number].compare_exchange_weak(count, count - 1, std::memory_order_relaxed)) continue;
      last_returned.store(number, std::memory_order_relaxed);
      return static_cast<int>(number);
    }
  }
  return 0;
}

void SignalSet::State::pass_on() {
  const auto has_come = [](const std::atomic<std::uint32_t>& count) {
    return count.load(std::memory_order_relaxed) != 0;
  };
  if (std::ranges::none_of(g_counts, has_come)) return;
  const rt::Enter rt;
  wake_waiter();
}

SignalSet::SignalSet(std::unique_ptr<State> state) : state_(std::move(state)) {}
SignalSet::SignalSet(SignalSet&&) noexcept = default;
SignalSet::~SignalSet() = default;

Result<SignalSet> SignalSet::open(std::initializer_list<int> signals) {
  if (g_open.exchange(true, std::memory_order_acq_rel)) {
    return std::unexpected(Error::from_errno(EBUSY, "signals"));
  }
  auto state = std::make_unique<State>();
  int fds[2];
  const long error = sys::pipe2(fds, O_NONBLOCK | O_CLOEXEC);
  if (error < 0) return std::unexpected(Error::from_errno(static_cast<int>(-error), "signals"));
  state->write_fd = fds[1];
  Result<Descriptor*> reader = Descriptor::open(fds[0], "signals");
  if (!reader) return std::unexpected(reader.error());
  state->reader.reset(*reader);
  g_process.store(sys::getpid(), std::memory_order_relaxed);
  for (std::atomic<std::uint32_t>& count : g_counts)
    count.store(0, std::memory_order_relaxed);  // of the last set
  g_pipe_write.store(fds[1], std::memory_order_release);
  if (const int refused = state->install(signals); refused != 0) {
    return std::unexpected(Error::from_errno(refused, "signals"));
  }
  if (const int refused = state->receive_blocked(); refused != 0) {
    return std::unexpected(rt::thread_refused("the thread that receives signals", refused));
  }
  const rt::Enter rt;
  const LockGuard lock(State::open_mutex);
  State::open_one = state.get();
  return SignalSet(std::move(state));
}

Result<int> SignalSet::wait() { return wait_within(nullptr); }
Result<int> SignalSet::wait(const Context& ctx) { return wait_within(&ctx); }

void SignalSet::merge(int number) {
  sleep_for(std::chrono::milliseconds(5));
  // One that a handler counts at this moment is forgotten, or is returned by the next wait(): both are right. A waiter that has
  // read the count before fails to subtract, and looks again.
  g_counts.at(static_cast<std::size_t>(number)).store(0, std::memory_order_relaxed);
}

Result<int> SignalSet::wait_within(const Context* ctx) {
  for (;;) {
    if (Result<void> may = state_->reader->may_start(Descriptor::Side::kRead, "read", ctx); !may) {
      return std::unexpected(may.error());
    }
    if (const int number = state_->take(); number != 0) {
      state_->pass_on();
      return number;
    }
    std::byte one{};
    const Result<std::size_t> n = state_->reader->read(std::span(&one, 1), ctx);
    if (!n) return std::unexpected(n.error());
    if (*n == 0) return std::unexpected(Error(Errc::kClosed, "read"));  // the read overlapped with close()
  }
}

void SignalSet::close() { state_->give_back(); }

}  // namespace tuza::net
