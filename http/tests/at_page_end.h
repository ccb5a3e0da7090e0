// Bytes that end at the end of a page, in front of one that must not be touched: a read behind them ends the test.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <string_view>

namespace tuza::http {

// A copy of some bytes that ends where readable memory ends: reading one byte too many faults.
class AtPageEnd {
 public:
  explicit AtPageEnd(std::string_view bytes) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t used = (bytes.size() + page - 1) / page * page;
    size_ = used + page;
    map_ =
        static_cast<char*>(mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(map_ + used, page, PROT_NONE);
    begin_ = map_ + used - bytes.size();
    std::memcpy(begin_, bytes.data(), bytes.size());
  }
  ~AtPageEnd() { munmap(map_, size_); }
  AtPageEnd(const AtPageEnd&) = delete;
  AtPageEnd& operator=(const AtPageEnd&) = delete;
  [[nodiscard]] char* begin() const { return begin_; }

 private:
  char* map_;
  char* begin_;
  std::size_t size_;
};

}  // namespace tuza::http
