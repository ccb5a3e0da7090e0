// Reading a file that the kernel has cached: the cost of a blocking call that does not block.
#include <fcntl.h>
#include <stdlib.h>
#include <tuza/netpoll/file.h>
#include <tuza/sched/bench/bench.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <string>

namespace tuza {
namespace {

constexpr int kBatch = 10'000;
constexpr std::size_t kBlockBytes = 4096;
constexpr std::size_t kBlocks = 64;

// A temporary file; each byte of block N is N.
class Blocks {
 public:
  Blocks() : path_((std::filesystem::temp_directory_path() / "tuza-bench-XXXXXX").string()) {
    const int fd = ::mkstemp(path_.data());
    for (std::size_t block = 0; block < kBlocks; ++block) {
      const std::string bytes(kBlockBytes, static_cast<char>(block));
      good_ = good_ && ::write(fd, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
    }
    ::close(fd);
  }
  ~Blocks() { ::unlink(path_.c_str()); }
  Blocks(const Blocks&) = delete;
  Blocks& operator=(const Blocks&) = delete;

  [[nodiscard]] bool good() const { return good_; }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
  bool good_ = true;
};

using Block = std::array<std::byte, kBlockBytes>;

// Checks the first and the last word; the buffer held another block before.
bool is_block(const Block& block, std::size_t number) {
  std::array<std::byte, 8> right;
  right.fill(static_cast<std::byte>(number));
  return std::memcmp(block.data(), right.data(), right.size()) == 0 &&
         std::memcmp(block.data() + block.size() - right.size(), right.data(), right.size()) == 0;
}

// Reads block after block with `read(block, offset)`, which returns whether it got the whole block.
template <class Read>
void read_blocks(benchmark::State& state, bool good, Read read) {
  Block block{};
  while (good && state.KeepRunningBatch(kBatch)) {
    for (std::size_t i = 0; i < kBatch && good; ++i) {
      const std::size_t number = i % kBlocks;
      good = read(block, number * kBlockBytes) && is_block(block, number);
    }
  }
  if (!good) state.SkipWithError("a block was read wrong, or not at all");
}

// The lower bound: the system call alone, in the same runtime.
void BM_RawPread4K(benchmark::State& state) {
  const Blocks blocks;
  bench::in_runtime(state.range(0), [&] {
    const int fd = ::open(blocks.path().c_str(), O_RDONLY | O_CLOEXEC);
    read_blocks(state, blocks.good(), [fd](Block& block, std::size_t offset) {
      return ::pread(fd, block.data(), block.size(), static_cast<off_t>(offset)) ==
             static_cast<ssize_t>(block.size());
    });
    ::close(fd);
  });
}
BENCHMARK(BM_RawPread4K)->Apply(bench::both_proc_counts);

void BM_BlockingPread4K(benchmark::State& state) {
  const Blocks blocks;
  bench::in_runtime(state.range(0), [&] {
    Result<File> file = File::open(blocks.path());
    read_blocks(state, blocks.good() && file, [&file](Block& block, std::size_t offset) {
      const Result<std::size_t> n = file->pread(block, offset);
      return n && *n == block.size();
    });
  });
}
BENCHMARK(BM_BlockingPread4K)->Apply(bench::both_proc_counts);

}  // namespace
}  // namespace tuza
