#include <tuza/netpoll/pipe.h>

#include <fcntl.h>
#include <sys/ioctl.h>
#include <tuza/netpoll/poll/descriptor.h>
#include <tuza/netpoll/process/pipe_ends.h>
#include <tuza/sched/arch/calls.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace tuza {
namespace {

using PipeSide = net::Descriptor::Side;

Error pipe_closed(std::string_view op) { return {Errc::kClosed, op}; }

void set_pipe_deadline(net::Descriptor* descriptor, PipeSide side, PipeReader::TimePoint when) {
  if (descriptor != nullptr) descriptor->set_deadline(side, net::Deadline::to_ns(when));
}

// The number of a new pipe that is not `ours` (0: the reading one).
Result<detail::OwnFd> open_pipe(std::size_t ours, std::shared_ptr<net::Descriptor>& into) {
  std::array<int, 2> ends{};
  long error = sys::pipe2(ends.data(), O_CLOEXEC);
  if (error < 0) return std::unexpected(Error::from_errno(static_cast<int>(-error), "pipe"));
  detail::OwnFd childs(ends[1 - ours]);
  detail::OwnFd own(ends[ours]);
  error = sys::fcntl(own.get(), F_SETFL, O_NONBLOCK);
  if (error < 0) return std::unexpected(Error::from_errno(static_cast<int>(-error), "pipe"));
  const auto watch = ours == 0 ? net::Descriptor::Watch::kReads : net::Descriptor::Watch::kBoth;
  const Result<net::Descriptor*> opened = net::Descriptor::open(own.release(), "pipe", watch);
  if (!opened) return std::unexpected(opened.error());
  into = std::shared_ptr<net::Descriptor>(*opened, [](net::Descriptor* ended) { ended->dispose(); });
  return childs;
}

}  // namespace

Result<detail::OwnFd> detail::PipeEnds::open(PipeReader& ours) { return open_pipe(0, ours.descriptor_); }
Result<detail::OwnFd> detail::PipeEnds::open(PipeWriter& ours) { return open_pipe(1, ours.descriptor_); }

// Not until the pipe is empty: a writer may be faster.
Result<std::string> detail::PipeEnds::read_rest(PipeReader& from) {
  if (from.descriptor_ == nullptr) return std::unexpected(pipe_closed("read"));
  std::string text;
  const auto read = [&text](int fd) {
    int bytes = 0;
    const long asked = sys::ioctl(fd, FIONREAD, &bytes);
    if (asked < 0) return asked;
    text.resize(static_cast<std::size_t>(bytes));
    std::size_t done = 0;
    for (long n = 1; n > 0 && done < text.size(); done += static_cast<std::size_t>(std::max(n, 0L))) {
      n = sys::read(fd, text.data() + done, text.size() - done);
    }
    text.resize(done);
    return 0L;
  };
  const Result<long> done = from.descriptor_->control("read", read);
  if (!done) return std::unexpected(done.error());
  return text;
}

// By retry(), not by Descriptor::read(): a child that has set O_DIRECT writes packets, and a short read does not show that
// the pipe is empty.
Result<std::size_t> PipeReader::read(const Context& ctx, std::span<std::byte> into) {
  if (descriptor_ == nullptr) return std::unexpected(pipe_closed("read"));
  const Result<long> n = descriptor_->retry(
      PipeSide::kRead, "read", [into](int fd) { return sys::read(fd, into.data(), into.size()); }, &ctx);
  if (!n) return std::unexpected(n.error());
  return static_cast<std::size_t>(*n);
}

Result<std::string> PipeReader::read_all(const Context& ctx, std::size_t bytes_max) {
  constexpr std::size_t kPieceBytes = std::size_t{16} << 10;
  std::string text;
  for (;;) {
    const std::size_t before = text.size();
    text.resize(before + std::min(kPieceBytes, bytes_max - before) + 1);  // one too many tells
    const Result<std::size_t> n = read(ctx, std::span(text).subspan(before));
    if (!n) return std::unexpected(n.error());
    text.resize(before + *n);
    if (*n == 0) return text;
    if (text.size() > bytes_max) return std::unexpected(Error::from_errno(EFBIG, "read"));
  }
}

void PipeReader::set_deadline(TimePoint when) { set_pipe_deadline(descriptor_.get(), PipeSide::kRead, when); }

void PipeReader::close() {
  if (descriptor_ != nullptr) descriptor_->close();
}

Result<void> PipeWriter::write_all(const Context& ctx, std::span<const std::byte> data) {
  if (descriptor_ == nullptr) return std::unexpected(pipe_closed("write"));
  const auto write = [&data](int fd) {
    while (!data.empty()) {
      const long n = sys::write(fd, data.data(), data.size());
      if (n < 0) return n;
      data = data.subspan(static_cast<std::size_t>(n));
    }
    return 0L;
  };
  const Result<long> written = descriptor_->retry(PipeSide::kWrite, "write", write, &ctx);
  if (!written) return std::unexpected(written.error());
  return {};
}

void PipeWriter::set_deadline(TimePoint when) {
  set_pipe_deadline(descriptor_.get(), PipeSide::kWrite, when);
}

void PipeWriter::close() {
  if (descriptor_ != nullptr) descriptor_->close();
}

}  // namespace tuza
