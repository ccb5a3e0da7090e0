// Runs the benchmarks under their short names: Google Benchmark appends the measuring method
// ("/process_time/real_time"), which is the same for all of ours.
#include <benchmark/benchmark.h>

#include <memory>
#include <vector>

namespace {

class PlainNames : public benchmark::BenchmarkReporter {
 public:
  explicit PlainNames(std::unique_ptr<BenchmarkReporter> inner) : inner_(std::move(inner)) {}

  bool ReportContext(const Context& context) override {
    inner_->SetOutputStream(&GetOutputStream());
    inner_->SetErrorStream(&GetErrorStream());
    return inner_->ReportContext(context);
  }
  void ReportRuns(const std::vector<Run>& report) override {
    std::vector<Run> runs = report;
    for (Run& run : runs) {
      run.run_name.time_type.clear();
      run.run_name.min_time.clear();
      run.run_name.iterations.clear();
    }
    inner_->ReportRuns(runs);
  }
  void Finalize() override { inner_->Finalize(); }

 private:
  std::unique_ptr<BenchmarkReporter> inner_;
};

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  PlainNames reporter{
      std::unique_ptr<benchmark::BenchmarkReporter>(benchmark::CreateDefaultDisplayReporter())};
  benchmark::RunSpecifiedBenchmarks(&reporter);
  benchmark::Shutdown();
}
