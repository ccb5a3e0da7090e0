// A REST service with sessions, and a page that uses it: crud --set crud.key=$(openssl rand -hex 32)
//
//     POST   /api/session      {"user": "ada"}: 204, and a signed cookie; a real service asks for a password
//     DELETE /api/session      204
//     GET    /api/tasks        the tasks of the user
//     POST   /api/tasks        {"title": "..."}: 201 and the task, with its Location
//     GET    /api/tasks/{id}
//     PUT    /api/tasks/{id}   {"title": "...", "done": true}
//     DELETE /api/tasks/{id}   204
//
// Errors are {"error": "..."}: 400 for bad input, 401 without a session, 404, 405, 413, 415. The tasks are in memory, and gone with the
// process; examples/sqlite_notes.cpp keeps its notes.
#include <tuza/examples/crud/page.h>
#include <tuza/examples/crud/tasks.h>
#include <tuza/framework/app.h>
#include <tuza/http/cookie_signer.h>
#include <tuza/http/key.h>
#include <tuza/http/nlohmann_json.h>
#include <tuza/http/status_error.h>
#include <tuza/netpoll/tls.h>
#include <tuza/sched/log.h>

#include <openssl/rand.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <utility>

namespace crud {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Task, id, title, done)

// What a client sends; `done` may be missing.
struct TaskText {
  std::string title;
  bool done = false;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(TaskText, title, done)

struct SessionText {
  std::string user;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(SessionText, user)

}  // namespace crud

namespace {

using namespace std::chrono_literals;
namespace http = tuza::http;
using crud::Task;
using http::Request;
using http::ResponseWriter;

constexpr char kCookie[] = "session";
constexpr http::JsonLimits kJson{.bytes_max = 16 << 10};
constexpr std::size_t kTitleBytesMax = 200, kUserBytesMax = 50;
constexpr http::Key<std::string> kUser;

// Errors of handlers as JSON.
http::Middleware json_errors() {
  return [](http::Handler next) -> http::Handler {
    return [next = std::move(next)](Request& req, ResponseWriter& res) {
      try {
        next(req, res);
      } catch (const http::StatusError& error) {
        res.json(error.status(), nlohmann::json{{"error", error.what()}});
      }
    };
  };
}

// Only with a session; handlers find its user by kUser.
http::Middleware signed_in(const http::CookieSigner& signer) {
  return [&signer](http::Handler next) -> http::Handler {
    return [&signer, next = std::move(next)](Request& req, ResponseWriter& res) {
      std::optional<std::string> user = signer.get(req, kCookie);
      if (!user) throw http::StatusError(401, "sign in first");
      req.set(kUser, *std::move(user));
      next(req, res);
    };
  };
}

std::string checked(std::string text, std::size_t bytes_max, const char* what) {
  if (text.empty() || text.size() > bytes_max) {
    throw http::StatusError(400, std::string(what) + " has 1 to " + std::to_string(bytes_max) + " bytes");
  }
  return text;
}

void sign_in(const http::CookieSigner& signer, Request& req, ResponseWriter& res) {
  auto session = req.json<crud::SessionText>(kJson);
  signer.set(res, {.name = kCookie,
                   .value = checked(std::move(session.user), kUserBytesMax, "user"),
                   .max_age = 12h,
                   .secure = req.tls_info().has_value(),
                   .same_site = http::SameSite::kStrict});
  res.no_content();
}

void answer(ResponseWriter& res, const std::optional<Task>& task) {
  if (!task) throw http::StatusError(404, "no such task");
  res.json(*task);
}

void add_routes(http::Router& router, crud::Tasks& tasks, const http::CookieSigner& signer) {
  auto api = router.group("/api");
  api.use(json_errors());
  api.not_found([](Request&, ResponseWriter&) { throw http::StatusError(404, "no such path"); });
  api.method_not_allowed([](Request&, ResponseWriter&) { throw http::StatusError(405, "no such method"); });
  api.handle("POST /session", [&signer](Request& req, ResponseWriter& res) { sign_in(signer, req, res); });
  api.handle("DELETE /session", [](Request&, ResponseWriter& res) {
    res.delete_cookie(kCookie);
    res.no_content();
  });
  api.use(signed_in(signer));  // around what follows
  api.handle("GET /tasks",
             [&tasks](Request& req, ResponseWriter& res) { res.json(tasks.list(*req.get(kUser))); });
  api.handle("POST /tasks", [&tasks](Request& req, ResponseWriter& res) {
    auto text = req.json<crud::TaskText>(kJson);
    const Task task = tasks.add(*req.get(kUser), checked(std::move(text.title), kTitleBytesMax, "title"));
    res.set_header("Location", "/api/tasks/" + std::to_string(task.id));
    res.json(201, task);
  });
  api.handle("GET /tasks/{id}", [&tasks](Request& req, ResponseWriter& res) {
    answer(res, tasks.get(*req.get(kUser), req.path_value<std::int64_t>("id")));
  });
  api.handle("PUT /tasks/{id}", [&tasks](Request& req, ResponseWriter& res) {
    auto text = req.json<crud::TaskText>(kJson);
    answer(res,
           tasks.replace(*req.get(kUser), {.id = req.path_value<std::int64_t>("id"),
                                           .title = checked(std::move(text.title), kTitleBytesMax, "title"),
                                           .done = text.done}));
  });
  api.handle("DELETE /tasks/{id}", [&tasks](Request& req, ResponseWriter& res) {
    if (!tasks.remove(*req.get(kUser), req.path_value<std::int64_t>("id")))
      throw http::StatusError(404, "no such task");
    res.no_content();
  });
}

// Without a setting, sessions end with the process.
std::string key_of(const std::string& setting) {
  if (!setting.empty()) return setting;
  tuza::log_line(tuza::LogLevel::kWarning, "crud.key is not set: sessions end with this process");
  std::string key(http::CookieSigner::kKeyBytesMin, '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char*>(key.data()), static_cast<int>(key.size())) != 1) {
    throw std::runtime_error("no random numbers");
  }
  return key;
}

}  // namespace

int main(int argc, char** argv) {
  tuza::App app("crud");
  const auto key = app.setting("crud.key", "", "Signs the sessions; at least 32 bytes. Empty: a random one");
  key.check([](const std::string& text) {
    if (!text.empty()) http::CookieSigner signer({text});
  });
  crud::Tasks tasks;
  std::optional<http::CookieSigner> signer;
  return app.run(argc, argv, [&] {
    signer.emplace(std::vector{key_of(*key)});
    app.router().handle("GET /{$}", [](Request&, ResponseWriter& res) { res.html(crud::kPage); });
    add_routes(app.router(), tasks, *signer);
  });
}
