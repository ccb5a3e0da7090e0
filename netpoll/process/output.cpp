// Process::run() and Process::output(): feed and read a child until it ends.
//
// Input, output and errors each have a goroutine, so that none waits while another pipe is full. The readers go on until the
// child's end, also when the context has ended: a child that is asked to end may have something to say before. After the
// child's end they take what is in the pipes and stop, because a process that the child has left behind may keep a pipe open
// for ever.
#include <tuza/netpoll/process.h>
#include <tuza/netpoll/process/pipe_ends.h>
#include <tuza/sched/sync/wait_group.h>

#include <array>
#include <cerrno>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace tuza {
namespace {

class Collected {
 public:
  Collected(PipeReader& from, std::size_t bytes_max) : from_(from), bytes_max_(bytes_max) {}

  // Reads until the end, until `io` ends, or until there is too much, which stops the process.
  void collect(const Context& io, Process& process) {
    std::array<char, std::size_t{16} << 10> piece;
    for (;;) {
      const Result<std::size_t> n = from_.read(io, std::span(piece));
      if (!n || *n == 0) return;
      add(std::string_view(piece.data(), *n));
      if (!too_much_) continue;
      from_.close();
      process.stop();
      return;
    }
  }
  void collect_rest() {
    if (const Result<std::string> rest = detail::PipeEnds::read_rest(from_)) add(*rest);
  }

  [[nodiscard]] bool too_much() const { return too_much_; }
  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  void add(std::string_view piece) {
    too_much_ = too_much_ || piece.size() > bytes_max_ - text_.size();
    if (!too_much_) text_ += piece;
  }

  PipeReader& from_;
  const std::size_t bytes_max_;
  std::string text_;
  bool too_much_ = false;
};

std::string take_input(ProcessOptions& options) {
  if (!options.input.empty()) options.in = Stdio::pipe();
  return std::exchange(options.input, {});
}

// Returns when the child is gone, and with it the goroutines. The end of `ctx` has ended the child.
Result<ExitStatus> feed_and_wait(const Context& ctx, Process& process, std::string_view input,
                                 std::span<Collected> streams) {
  const auto [io, end_io] = with_cancel(Context::background());
  WaitGroup group;
  if (!input.empty()) {
    group.go([&, &io = io] {
      (void)process.in().write_all(io, input);  // it need not read all of it
      process.in().close();
    });
  }
  for (Collected& stream : streams) {
    group.go([&, &io = io] { stream.collect(io, process); });
  }
  Result<ExitStatus> status = process.wait();
  end_io();
  group.wait();
  for (Collected& stream : streams) stream.collect_rest();
  if (ctx.done()) return std::unexpected(ctx.cause());
  return status;
}

}  // namespace

Result<ExitStatus> Process::run(const Context& ctx, const std::vector<std::string>& command,
                                ProcessOptions options) {
  const std::string input = take_input(options);
  Result<Process> process = start(ctx, command, options);
  if (!process) return std::unexpected(process.error());
  return feed_and_wait(ctx, *process, input, {});
}

Result<ProcessOutput> Process::output(const Context& ctx, const std::vector<std::string>& command,
                                      ProcessOptions options) {
  const std::string input = take_input(options);
  if (options.out.kind() != Stdio::Kind::kNull) options.out = Stdio::pipe();
  if (options.err.kind() != Stdio::Kind::kNull && options.err.kind() != Stdio::Kind::kOutput) {
    options.err = Stdio::pipe();
  }
  Result<Process> process = start(ctx, command, options);
  if (!process) return std::unexpected(process.error());
  std::array<Collected, 2> streams{Collected(process->out(), options.output_bytes_max),
                                   Collected(process->err(), options.output_bytes_max)};
  const Result<ExitStatus> status = feed_and_wait(ctx, *process, input, streams);
  if (!status) return std::unexpected(status.error());
  for (const Collected& stream : streams) {
    if (stream.too_much()) return std::unexpected(Error::from_errno(EFBIG, "output", command.front()));
  }
  return ProcessOutput{*status, streams[0].take(), streams[1].take()};
}

}  // namespace tuza
