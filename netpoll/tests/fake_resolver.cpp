#include <tuza/netpoll/tests/fake_resolver.h>

#include <dlfcn.h>
#include <netdb.h>
#include <tuza/netpoll/socket/socket_name.h>

#include <cstring>
#include <new>
#include <optional>
#include <utility>

namespace tuza::net::testing {
namespace {

std::map<std::string, ResolverAnswer>& answers_of_names() {
  static std::map<std::string, ResolverAnswer> map;
  return map;
}

// One element of a list. It owns its address; `info` is what the caller sees of it, and comes first.
struct Element {
  addrinfo info{};
  SocketName name;
};

template <class F>
F* system_function(const char* name) {
  return reinterpret_cast<F*>(dlsym(RTLD_NEXT, name));
}

int answer(const ResolverAnswer& given, int family, addrinfo** list) {
  *list = nullptr;
  if (given.no_memory) throw std::bad_alloc();
  if (given.code != 0) return given.code;
  addrinfo** end = list;
  for (const std::string& text : given.addresses) {
    const SocketName name = SocketName::of(Endpoint(IpAddress::parse(text).value(), 0));
    if (family != AF_UNSPEC && family != name.storage.ss_family) continue;
    auto* element = new Element{{}, name};
    element->info.ai_family = name.storage.ss_family;
    element->info.ai_socktype = SOCK_STREAM;
    element->info.ai_addrlen = name.length;
    element->info.ai_addr = reinterpret_cast<struct sockaddr*>(&element->name.storage);
    element->info.ai_flags = AI_NUMERICHOST;  // ours: nobody sets it in an answer
    *end = &element->info;
    end = &element->info.ai_next;
  }
  return *list == nullptr ? EAI_NONAME : 0;
}

}  // namespace

void ResolverGate::open() {
  const std::scoped_lock lock(mutex_);
  open_ = true;
  opened_.notify_all();
}

int ResolverGate::waiting() {
  const std::scoped_lock lock(mutex_);
  return waiting_;
}

void ResolverGate::pass() {
  std::unique_lock lock(mutex_);
  ++waiting_;
  opened_.wait(lock, [this] { return open_; });
  --waiting_;
}

FakeResolver::FakeResolver(std::map<std::string, ResolverAnswer> given) {
  answers_of_names() = std::move(given);
}
FakeResolver::~FakeResolver() { answers_of_names().clear(); }

}  // namespace tuza::net::testing

extern "C" int getaddrinfo(const char* host, const char* service, const addrinfo* hints, addrinfo** list) {
  using namespace tuza::net::testing;
  const auto found = host == nullptr ? answers_of_names().end() : answers_of_names().find(host);
  if (found != answers_of_names().end()) {
    const ResolverAnswer given = found->second;  // a copy: the FakeResolver may have gone when the gate opens
    if (given.gate != nullptr) given.gate->pass();
    return answer(given, hints->ai_family, list);
  }
  return system_function<decltype(getaddrinfo)>("getaddrinfo")(host, service, hints, list);
}

extern "C" void freeaddrinfo(addrinfo* list) {
  using namespace tuza::net::testing;
  if (list == nullptr || list->ai_flags != AI_NUMERICHOST) {
    return system_function<decltype(freeaddrinfo)>("freeaddrinfo")(list);
  }
  while (list != nullptr) {
    addrinfo* next = list->ai_next;
    delete reinterpret_cast<Element*>(list);
    list = next;
  }
}
