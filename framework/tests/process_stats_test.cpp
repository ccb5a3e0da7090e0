// The metrics of the process: what the kernel does not tell is left out.
#include <tuza/framework/metrics/process_stats.h>
#include <tuza/framework/metrics/prometheus_text.h>
#include <tuza/sched/run.h>

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace tuza {
namespace {

TEST(ProcessStats, WithoutProcItsValuesAreLeftOut) {
  const int status = run([] {
    MetricsSnapshot snapshot;
    snapshot.process = process_stats("/nowhere");
    const std::string text = prometheus_text(snapshot);
    for (const char* name : {"process_resident_memory_bytes", "process_virtual_memory_bytes",
                             "process_open_fds", "process_start_time_seconds"}) {
      EXPECT_EQ(text.find(name), std::string::npos) << name;
    }
    // These come from system calls.
    EXPECT_NE(text.find("\nprocess_cpu_seconds_total "), std::string::npos);
    EXPECT_NE(text.find("\nprocess_max_fds "), std::string::npos);
  });
  EXPECT_EQ(status, 0);
}

TEST(ProcessStats, WithProcAllAreThere) {
  run([] {
    const ProcessStats stats = process_stats();
    EXPECT_GT(stats.resident_bytes.value_or(0), 0U);
    EXPECT_GT(stats.virtual_bytes.value_or(0), stats.resident_bytes.value_or(0));
    EXPECT_GT(stats.open_fds.value_or(0), 0U);
    EXPECT_GT(stats.start_seconds.value_or(0), 0);
    EXPECT_GT(stats.cpu_seconds.value_or(0), 0);
  });
}

// As with hidepid, or a /proc of which a sandbox shows a part.
TEST(ProcessStats, FilesWithOtherContentsCountAsNotReadable) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("tuza-proc-" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder / "self");
  std::ofstream(folder / "stat") << "cpu 1 2 3\nbtime 1000\n";
  std::ofstream(folder / "self/stat") << "1 (a) b) S 1 2";
  std::ofstream(folder / "self/statm") << "many\n";
  run([&folder] {
    const ProcessStats stats = process_stats(folder.string());
    EXPECT_FALSE(stats.resident_bytes || stats.virtual_bytes || stats.open_fds || stats.start_seconds);
  });
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace tuza
