// Asks for every page of a site that its links lead to, eight at a time, and prints each with its status:
//
//     crawler http://127.0.0.1:8080/ [PAGES]
//     200 http://127.0.0.1:8080/
//     404 http://127.0.0.1:8080/gone
//
// PAGES is the largest number of pages, 1,000 unless given. The exit status is 1 if a page is missing or did not come. For
// sites of one's own: it does not read robots.txt.
//
// Each page is a goroutine. The client's limit of connections lets eight of them work at a time, first come, first served.
#include <tuza/http/client.h>
#include <tuza/http/url.h>
#include <tuza/sched/run.h>
#include <tuza/sched/sync/context.h>
#include <tuza/sched/sync/mutex.h>
#include <tuza/sched/sync/wait_group.h>

#include <atomic>
#include <charconv>
#include <cstddef>
#include <cstdio>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_set>
#include <utility>
#include <vector>

namespace {

using tuza::Result;
namespace http = tuza::http;

constexpr std::size_t kPagesAtATime = 8;
constexpr std::size_t kPageBytesMax = 4 << 20;

// The values of the attributes `href="..."`. It does not parse HTML, so those in comments count, too.
std::vector<std::string> links_in(std::string_view html) {
  constexpr std::string_view kBegin = "href=\"", kAmpersand = "&amp;";
  std::vector<std::string> links;
  while (true) {
    const std::size_t begin = html.find(kBegin);
    if (begin == html.npos) return links;
    html.remove_prefix(begin + kBegin.size());
    std::string link(html.substr(0, html.find('"')));
    for (std::size_t at = 0; (at = link.find(kAmpersand, at)) != link.npos; ++at)
      link.replace(at, kAmpersand.size(), "&");
    links.push_back(std::move(link));
  }
}

class Crawl {
 public:
  explicit Crawl(std::size_t pages_max) : pages_max_(pages_max) {}

  // Whether all pages came.
  bool run(const http::Url& first) {
    visit_once(first);
    pages_.wait();
    return all_came_;
  }

 private:
  void visit_once(const http::Url& url) {
    if (is_new(url)) pages_.go([this, url] { visit(url); });
  }

  bool is_new(const http::Url& url) {
    const std::scoped_lock lock(mutex_);
    return seen_.size() < pages_max_ && seen_.insert(url.to_string()).second;
  }

  void visit(const http::Url& url) {
    auto res = client_.get(tuza::Context::background(), url.to_string());
    if (!res) return failed(res.error());
    std::printf("%d %s\n", res->status(), url.to_string().c_str());
    if (res->status() >= 400) all_came_ = false;
    // A redirect has led elsewhere: to another site, or to a page that has a goroutine already.
    const http::Url& page = res->url();
    if (page.origin() != url.origin() || (page != url && !is_new(page))) return;
    if (!res->header("Content-Type").value_or("").starts_with("text/html")) return;
    const Result<std::string> html = res->body();
    if (!html) return failed(html.error());
    for (const std::string& link : links_in(*html)) {
      const Result<http::Url> next = page.resolve(link);
      if (next && next->origin() == page.origin()) visit_once(*next);
    }
  }

  void failed(const tuza::Error& error) {
    all_came_ = false;
    std::fprintf(stderr, "crawler: %s\n", error.message().c_str());
  }

  const std::size_t pages_max_;
  http::Client client_{{.connections_per_origin_max = kPagesAtATime,
                        .body_bytes_max = kPageBytesMax,
                        .user_agent = "tuza-crawler"}};
  tuza::WaitGroup pages_;
  std::atomic<bool> all_came_ = true;
  tuza::Mutex mutex_;
  std::unordered_set<std::string> seen_;
};

std::optional<std::size_t> number_in(std::string_view text) {
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

int main(int argc, char** argv) {
  constexpr const char* kUsage = "Usage: crawler http://HOST:PORT/PATH [PAGES]\n";
  if (argc == 2 && std::string_view(argv[1]) == "--help") return std::fputs(kUsage, stdout), 0;
  const std::optional<std::size_t> pages_max = argc == 3 ? number_in(argv[2]) : 1000;
  if (argc < 2 || argc > 3 || !pages_max) return std::fputs(kUsage, stderr), 2;
  const Result<http::Url> first = http::Url::parse(argv[1]);
  if (!first) return std::fprintf(stderr, "crawler: %s\n", first.error().message().c_str()), 2;
  return tuza::run([&] { return Crawl(*pages_max).run(*first) ? 0 : 1; });
}
