#include <tuza/framework/admin/sched_json.h>

#include <tuza/framework/metrics/http_counts.h>
#include <tuza/framework/metrics/process_stats.h>
#include <tuza/sched/stats.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <concepts>
#include <utility>
#include <vector>

namespace tuza {
namespace {

// Writes the members of objects and the elements of arrays, and inserts the commas.
class Json {
 public:
  void open(char bracket) {
    separate();
    text_ += bracket;
    first_ = true;
  }
  void open(std::string_view key, char bracket) {
    name(key);
    text_ += bracket;
    first_ = true;
  }
  void close(char bracket) {
    text_ += bracket;
    first_ = false;
  }
  void add(std::string_view key, std::string_view value) {
    name(key);
    quote(value);
  }
  void add(std::string_view key, const char* value) { add(key, std::string_view(value)); }
  void add(std::string_view key, bool value) {
    name(key);
    text_ += value ? "true" : "false";
  }
  template <class Number>
    requires(std::integral<Number> || std::floating_point<Number>) && (!std::same_as<Number, bool>)
  void add(std::string_view key, Number value) {
    name(key);
    number(value);
  }
  void element(std::integral auto value) {
    separate();
    number(value);
  }
  std::string take() { return std::move(text_); }

 private:
  void separate() {
    if (!first_) text_ += ',';
    first_ = false;
  }
  void name(std::string_view key) {
    separate();
    quote(key);
    text_ += ':';
  }
  void number(auto value) {
    char digits[32];
    text_.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
  }
  void quote(std::string_view value) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    text_ += '"';
    for (const char c : value) {
      const auto byte = static_cast<unsigned char>(c);
      if (c == '"' || c == '\\') {
        (text_ += '\\') += c;
      } else if (byte < 0x20) {
        text_.append("\\u00").append(1, kDigits[byte >> 4]).append(1, kDigits[byte & 15]);
      } else {
        text_ += c;
      }
    }
    text_ += '"';
  }

  std::string text_;
  bool first_ = true;
};

void add_totals(Json& json, const SchedStats& s) {
  json.open("sched", '{');
  json.add("uptime_ms", s.uptime_ns / 1'000'000);
  json.add("max_procs", s.max_procs);
  json.add("procs_idle", s.procs_idle);
  json.add("threads", s.threads);
  json.add("threads_idle", s.threads_idle);
  json.add("threads_spinning", s.threads_spinning);
  json.add("lane", s.lane);
  json.add("lane_computing", s.lane_computing);
  json.add("lane_suspended", s.lane_suspended);
  json.add("poller", s.poller);
  json.open("global_queue", '[');
  for (const std::uint32_t length : s.global_queue) json.element(length);
  json.close(']');
  json.add("local_queues", s.local_queues);
  json.add("started", s.started);
  json.add("ended", s.ended);
  json.add("picks", s.picks);
  json.add("slices", s.slices);
  json.add("handoffs", s.handoffs);
  json.add("handoffs_withdrawn", s.handoffs_withdrawn);
  json.add("lane_arrivals", s.lane_arrivals);
  json.add("suspend_signals", s.suspend_signals);
  json.add("wakeups", s.wakeups);
  json.add("sysmon_ticks", s.sysmon_ticks);
  json.add("stacks", s.stacks);
  json.add("stack_bytes", s.stack_bytes);
  json.close('}');
}

void add_procs(Json& json) {
  json.open("procs", '[');
  for (const ProcStats& p : proc_stats()) {
    json.open('{');
    json.add("id", p.id);
    json.add("state", name(p.state));
    json.add("machine", p.machine);
    json.add("woken", p.woken);
    json.add("queued", p.queued);
    json.add("next", p.has_next);
    json.add("picks", p.picks);
    json.add("slices", p.slices);
    json.add("timers", p.timers);
    json.add("average_run_ns", p.average_run_ns);
    json.close('}');
  }
  json.close(']');
}

void add_machines(Json& json) {
  std::vector<MachineStats> all = machine_stats();
  if (all.size() > kMachinesMax) {
    std::ranges::sort(all, {},
                      [](const MachineStats& m) { return std::pair(m.state == MachineState::kIdle, m.id); });
    all.resize(kMachinesMax);
  }
  json.open("machines", '[');
  for (const MachineStats& m : all) {
    json.open('{');
    json.add("id", m.id);
    json.add("tid", m.thread_id);
    json.add("state", name(m.state));
    json.add("proc", m.proc);
    json.add("goroutine", m.goroutine);
    json.add("locked", m.locked_goroutine);
    json.close('}');
  }
  json.close(']');
}

void add_goroutines(Json& json) {
  const GoroutineCounts counts = count_goroutines();
  json.open("goroutines", '{');
  json.add("running", counts.running);
  json.add("runnable", counts.runnable);
  json.add("waiting", counts.waiting);
  json.open("waiting_for", '{');
  for (std::size_t i = 0; i < kWaitReasons; ++i) {
    if (counts.waiting_for[i] > 0) json.add(name(static_cast<WaitReason>(i)), counts.waiting_for[i]);
  }
  json.close('}');
  json.close('}');
}

void add_http(Json& json, const Metrics::Http& http) {
  json.open("http", '{');
  json.add("requests", http.requests);
  json.add("errors", http.errors);
  json.add("in_flight", http.in_flight);
  json.add("response_bytes", http.response_bytes);
  json.add("duration_ns", http.duration_ns);
  json.open("duration_bounds_ns", '[');
  for (const double seconds : HttpCounts::kBoundsSeconds) json.element(std::llround(seconds * 1e9));
  json.close(']');
  json.open("duration_buckets", '[');
  for (const std::uint64_t count : http.duration_buckets) json.element(count);
  json.close(']');
  json.add("connections", http.servers.open);
  json.add("accepted", http.servers.accepted);
  json.close('}');
}

void add_use(Json& json, std::size_t busy, std::size_t idle, std::size_t waiting, std::uint64_t opened) {
  json.add("busy", busy);
  json.add("idle", idle);
  json.add("waiting", waiting);
  json.add("opened", opened);
}

void add_client(Json& json, const http::ClientStats& s) {
  add_use(json, s.busy(), s.idle, s.waiting, s.dialled);
}

void add_connections(Json& json, const Metrics::Connections& all) {
  json.open("pools", '[');
  for (const auto& [name, s] : all.pools) {
    json.open('{');
    json.add("name", name);
    add_use(json, s.in_use, s.idle, s.waiting, s.opened);
    json.add("waits", s.waited);
    json.add("wait_ns", s.wait_time.count());
    json.close('}');
  }
  json.close(']');
  json.open("clients", '[');
  for (const auto& [name, s] : all.clients) {
    json.open('{');
    json.add("name", name);
    add_client(json, s);
    json.add("requests", s.requests);
    json.close('}');
  }
  json.close(']');
  json.open("upstreams", '[');
  for (const auto& [proxy, s] : all.upstreams) {
    json.open('{');
    json.add("proxy", proxy);
    json.add("name", s.name);
    json.add("up", !s.left_out && !s.unhealthy);
    add_client(json, s.client);
    json.add("requests", s.requests);
    json.add("failures", s.failures);
    json.close('}');
  }
  json.close(']');
}

}  // namespace

std::string sched_json(std::string_view service, const Metrics& metrics) {
  const ProcessStats process = process_stats();
  Json json;
  json.open('{');
  json.add("service", service);
  add_totals(json, sched_stats());
  add_procs(json);
  add_machines(json);
  add_goroutines(json);
  add_http(json, metrics.http());
  add_connections(json, metrics.connections());
  json.open("process", '{');
  // What cannot be read is left out.
  if (process.cpu_seconds) json.add("cpu_seconds", *process.cpu_seconds);
  if (process.resident_bytes) json.add("resident_bytes", *process.resident_bytes);
  if (process.open_fds) json.add("open_fds", *process.open_fds);
  json.close('}');
  json.close('}');
  return json.take();
}

}  // namespace tuza
