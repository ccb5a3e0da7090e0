#include <tuza/netpoll/process.h>

#include <tuza/netpoll/process/child.h>
#include <tuza/netpoll/process/pipe_ends.h>
#include <tuza/netpoll/process/spawn.h>
#include <tuza/netpoll/process/spawn_actions.h>

#include <array>
#include <cerrno>
#include <utility>

namespace tuza {
namespace {

// What a stream of the child leads to. Opens the pipe, if it is one.
template <class Ours>
Result<int> fd_of(const Stdio& stream, Ours& ours, detail::OwnFd& childs) {
  switch (stream.kind()) {
    case Stdio::Kind::kInherited: return detail::kFdInherited;
    case Stdio::Kind::kNull: return detail::kFdNull;
    case Stdio::Kind::kOutput: return detail::kFdOutput;
    case Stdio::Kind::kDescriptor:
      if (stream.fd() < 0) return std::unexpected(Error::from_errno(EBADF, "start"));
      return stream.fd();
    case Stdio::Kind::kPipe: break;
  }
  Result<detail::OwnFd> opened = detail::PipeEnds::open(ours);
  if (!opened) return std::unexpected(opened.error());
  childs = std::move(*opened);
  return childs.get();
}

Error of_program(const Error& error, const std::vector<std::string>& command) {
  return {error.code(), "start", command.empty() ? "" : command.front()};
}

}  // namespace

std::string ExitStatus::message() const {
  if (signal_ == 0) return "exit status " + std::to_string(code_);
  const char* name = detail::short_signal_name(signal_);
  std::string text =
      name != nullptr ? std::string("killed by SIG") + name : "killed by signal " + std::to_string(signal_);
  return dumped_core_ ? text + ", core dumped" : text;
}

Result<Process> Process::start(const Context& ctx, const std::vector<std::string>& command,
                               const ProcessOptions& options) {
  if (ctx.done()) return std::unexpected(ctx.cause());
  const bool contradicts = !options.input.empty() || options.in.kind() == Stdio::Kind::kOutput ||
                           options.out.kind() == Stdio::Kind::kOutput;
  if (contradicts) return std::unexpected(of_program(Error::from_errno(EINVAL, "start"), command));
  Process process;
  std::array<detail::OwnFd, 3> childs;
  const std::array<Result<int>, 3> fds{fd_of(options.in, process.in_, childs[0]),
                                       fd_of(options.out, process.out_, childs[1]),
                                       fd_of(options.err, process.err_, childs[2])};
  detail::ChildFds numbers{};
  for (std::size_t i = 0; i < fds.size(); ++i) {
    if (!fds[i]) return std::unexpected(of_program(fds[i].error(), command));
    numbers[i] = *fds[i];
  }
  const auto child = std::make_shared<detail::Child>(detail::Child::Plan{
      command.empty() ? std::string() : command.front(), options.own_group, options.grace});
  const Result<pid_t> pid = detail::spawn(command, options, numbers);
  if (!pid) return std::unexpected(pid.error());
  process.child_ = child;  // whatever happens from here on, its destructor ends the child
  if (const Result<void> watched = child->watch(*pid, ctx); !watched) return std::unexpected(watched.error());
  return process;
}

Process& Process::operator=(Process&& other) noexcept {
  Process old(std::move(*this));
  child_ = std::move(other.child_);
  in_ = std::move(other.in_);
  out_ = std::move(other.out_);
  err_ = std::move(other.err_);
  return *this;
}

Process::~Process() {
  in_.close();  // a child that ignores SIGTERM may end with its input
  if (child_ != nullptr) child_->end();
}

int Process::pid() const { return child_ == nullptr ? -1 : child_->pid(); }

Result<ExitStatus> Process::wait(const Context& ctx) {
  if (child_ == nullptr) return std::unexpected(Error(Errc::kClosed, "wait"));
  return child_->wait(ctx);
}

Result<void> Process::signal(int number) {
  if (child_ == nullptr) return std::unexpected(Error(Errc::kClosed, "signal"));
  return child_->signal(number);
}

void Process::stop() {
  if (child_ != nullptr) child_->stop();
}

void Process::detach() {
  if (child_ != nullptr) child_->forget_context();
  child_ = nullptr;
  in_ = {};
  out_ = err_ = {};
}

}  // namespace tuza
