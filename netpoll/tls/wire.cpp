#include <tuza/netpoll/tls/wire.h>

#include <openssl/err.h>
#include <tuza/sched/rt/base/check.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

namespace tuza::net::tls {
namespace {

rt::PerPCache& cache() {
  static rt::PerPCache instance;
  return instance;
}

int read_wire(BIO* bio, char* into, std::size_t size, std::size_t* done) {
  BIO_clear_retry_flags(bio);
  Queue& in = static_cast<Wire*>(BIO_get_data(bio))->in;
  const std::span<std::byte> bytes = in.unread().first(std::min(size, in.unread().size()));
  if (bytes.empty()) {
    BIO_set_retry_read(bio);
    return 0;
  }
  std::memcpy(into, bytes.data(), bytes.size());
  in.consume(bytes.size());
  *done = bytes.size();
  return 1;
}

int write_wire(BIO* bio, const char* from, std::size_t size, std::size_t* done) {
  BIO_clear_retry_flags(bio);
  Queue& out = static_cast<Wire*>(BIO_get_data(bio))->out;
  const std::size_t n = std::min(size, out.room());
  if (n == 0) {
    BIO_set_retry_write(bio);
    return 0;
  }
  try {
    out.append(std::as_bytes(std::span(from, n)));
  } catch (const std::bad_alloc&) {
    ERR_raise(ERR_LIB_SYS, ENOMEM);  // no exception may pass through OpenSSL, which is C
    return -1;
  }
  *done = n;
  return 1;
}

long control_wire(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

BIO_METHOD* make_method() {
  BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "tuza");
  TUZA_CHECK(made != nullptr);
  BIO_meth_set_read_ex(made, read_wire);
  BIO_meth_set_write_ex(made, write_wire);
  BIO_meth_set_ctrl(made, control_wire);
  return made;
}

}  // namespace

Buffer* Buffer::take() {
  if (rt::CacheNode* node = cache().take(); node != nullptr) return static_cast<Buffer*>(node);
  return new Buffer;
}

void Buffer::give_back(Buffer* buffer) {
  if (!cache().put(buffer) && !cache().put_surplus(buffer)) delete buffer;
}

bool Queue::append(std::span<const std::byte> data) {
  if (data.size() > room()) return false;
  if (buffer_ == nullptr) buffer_ = Buffer::take();
  std::memcpy(buffer_->bytes.data() + end_, data.data(), data.size());
  end_ += static_cast<std::uint32_t>(data.size());
  return true;
}

void Queue::adopt(Buffer* buffer, std::size_t n) {
  TUZA_CHECK(empty());
  buffer_ = buffer;
  begin_ = 0;
  end_ = static_cast<std::uint32_t>(n);
}

void Queue::drop() {
  begin_ = end_ = 0;
  if (buffer_ != nullptr) Buffer::give_back(std::exchange(buffer_, nullptr));
}

BIO* Wire::make_bio() {
  static BIO_METHOD* const method = make_method();
  BIO* bio = BIO_new(method);
  if (bio == nullptr) return nullptr;
  BIO_set_data(bio, this);
  BIO_set_init(bio, 1);
  return bio;
}

std::span<std::byte> Refill::take() {
  if (buffer_ == nullptr) buffer_ = Buffer::take();
  return buffer_->bytes;
}

void Refill::give_back() {
  if (buffer_ != nullptr) Buffer::give_back(std::exchange(buffer_, nullptr));
  bytes_ = 0;
}

}  // namespace tuza::net::tls
