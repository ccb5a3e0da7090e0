// The code of docs/guide/http-requests.md.
#include <tuza/http.h>
#include <tuza/http/nlohmann_json.h>

#include <charconv>
#include <chrono>
#include <string>
#include <string_view>
#include <system_error>

namespace {

using namespace std::chrono_literals;
namespace http = tuza::http;
using http::Request;
using http::ResponseWriter;

void note(std::string_view, std::string_view) {}
std::optional<std::string> password_of(std::string_view) { return {}; }  // none: no such user
std::string page_of(std::string_view) { return {}; }

//! [values]
void search(Request& req, ResponseWriter& res) {
  const http::Values query = req.query_values();        // ?tag=a&tag=b&page=2
  const int page = query.get<int>("page").value_or(1);  // "page=x": 400
  for (const std::string_view tag : query.get_all("tag")) note("tag", tag);
  res.text("page " + std::to_string(page) + "\n");
}

void sign_up(Request& req, ResponseWriter& res) {
  const http::Values form = req.form();  // 415, 413 or 400 if it is none
  for (const auto& [name, value] : form) note(name, value);
  res.redirect("/welcome?" + form.encode(), 303);
}
//! [values]

//! [cookies]
void choose_theme(Request& req, ResponseWriter& res) {
  const auto now = req.cookie("theme").value_or("light");
  res.set_cookie(
      {.name = "theme", .value = now == "dark" ? "light" : "dark", .max_age = 24h * 365, .secure = true});
  res.redirect("/", 303);
}
//! [cookies]

//! [signed]
class Login {
 public:
  explicit Login(std::string key) : signer_({std::move(key)}) {}

  void enter(Request& req, ResponseWriter& res) const {
    const http::Values form = req.form();
    const std::string_view user = form.get("user").value_or("");
    const std::optional<std::string> password = password_of(user);
    if (!password || !http::constant_time_equal(form.get("password").value_or(""), *password))
      return res.error(403);
    signer_.set(res, {.name = "__Host-user", .value = std::string(user), .max_age = 12h, .secure = true});
    res.redirect("/", 303);
  }
  void leave(Request&, ResponseWriter& res) const {
    res.delete_cookie("__Host-user");
    res.redirect("/", 303);
  }
  void greet(Request& req, ResponseWriter& res) const {
    const std::optional<std::string> user = signer_.get(req, "__Host-user");
    res.text(user ? "hello, " + *user + "\n" : "hello\n");
  }

 private:
  http::CookieSigner signer_;
};
//! [signed]

//! [upload]
void upload(Request& req, ResponseWriter& res) {
  http::Multipart form(req, {.file_bytes_max = 5 << 20, .total_bytes_max = 7 << 20});
  for (http::Part& part : form) {
    if (part.is_file()) {
      const http::SavedFile file = part.save("/var/lib/photos");  // 413, or 507 if the disk is full
      note(part.safe_file_name(), file.path);
    } else {
      note(part.name(), part.text());
    }
  }
  res.redirect("/photos", 303);
}
//! [upload]

//! [negotiation]
void item(Request& req, ResponseWriter& res) {
  res.set_header("Vary", "Accept, Accept-Language");
  const auto type = req.accepts({"application/json", "text/html"});
  if (!type) throw http::StatusError(406);
  const auto language = req.accepts_language({"en", "de"}).value_or("en");
  if (*type == "text/html") return res.html(page_of(language));
  res.json(R"({"id": 7})");
}
//! [negotiation]

//! [credentials]
void report(Request& req, ResponseWriter& res) {
  const auto who = req.basic_auth();
  const std::optional<std::string> password = who ? password_of(who->user) : std::nullopt;
  if (!password || !http::constant_time_equal(who->password, *password)) {
    res.set_header("WWW-Authenticate", R"(Basic realm="reports", charset="UTF-8")");
    return res.error(401);
  }
  res.text("hello, " + who->user + "\n");
}
//! [credentials]

//! [json]
struct Point {
  int x = 0, y = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Point, x, y)

void mirror(Request& req, ResponseWriter& res) {
  const auto point = req.json<Point>();  // 415, 413 or 400 if it is none
  res.json(201, Point{point.y, point.x});
}
//! [json]

}  // namespace

//! [codec]
struct Celsius {
  int degrees = 0;
};

template <>
struct tuza::http::JsonCodec<Celsius> {
  static void encode(const Celsius& value, std::string& out) { out += std::to_string(value.degrees); }
  static Celsius decode(std::string_view json) {
    Celsius value;
    const auto [end, error] = std::from_chars(json.begin(), json.end(), value.degrees);
    if (error != std::errc() || end != json.end())
      throw JsonError("a temperature is a number");  // 400, with this text
    return value;
  }
};
//! [codec]

// Compiled, not run.
void tuza_docs_http_requests() {
  http::Router router;
  router.handle("GET /search", search);
  router.handle("POST /sign-up", sign_up);
  router.handle("POST /theme", choose_theme);
  router.handle("POST /photos", upload);
  router.handle("GET /items/7", item);
  router.handle("GET /report", report);
  router.handle("POST /mirror", mirror);
  router.handle("POST /celsius", [](Request& req, ResponseWriter& res) { res.json(req.json<Celsius>()); });
  const Login login(std::string(32, 'k'));
  router.handle("POST /login", [&login](Request& req, ResponseWriter& res) { login.enter(req, res); });
  router.handle("POST /logout", [&login](Request& req, ResponseWriter& res) { login.leave(req, res); });
  router.handle("GET /", [&login](Request& req, ResponseWriter& res) { login.greet(req, res); });
}
