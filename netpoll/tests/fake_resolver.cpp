#include <tuza/netpoll/tests/fake_resolver.h>

#include <dlfcn.h>
#include <netdb.h>
#include <tuza/netpoll/endpoint.h>

#include <asio/ip/tcp.hpp>

#include <cstring>
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
  Endpoint endpoint;
};

template <class F>
F* system_function(const char* name) {
  return reinterpret_cast<F*>(dlsym(RTLD_NEXT, name));
}

int answer(const ResolverAnswer& given, int family, addrinfo** list) {
  *list = nullptr;
  if (given.code != 0) return given.code;
  addrinfo** end = list;
  for (const std::string& text : given.addresses) {
    const auto address = asio::ip::make_address(text);
    const int own = address.is_v6() ? AF_INET6 : AF_INET;
    if (family != AF_UNSPEC && family != own) continue;
    auto* element = new Element{{}, Endpoint(address, 0)};
    element->info.ai_family = own;
    element->info.ai_socktype = SOCK_STREAM;
    element->info.ai_addrlen = static_cast<socklen_t>(element->endpoint.size());
    element->info.ai_addr = element->endpoint.data();
    element->info.ai_flags = AI_NUMERICHOST;  // ours: nobody sets it in an answer
    *end = &element->info;
    end = &element->info.ai_next;
  }
  return *list == nullptr ? EAI_NONAME : 0;
}

}  // namespace

FakeResolver::FakeResolver(std::map<std::string, ResolverAnswer> given) {
  answers_of_names() = std::move(given);
}
FakeResolver::~FakeResolver() { answers_of_names().clear(); }

}  // namespace tuza::net::testing

extern "C" int getaddrinfo(const char* host, const char* service, const addrinfo* hints, addrinfo** list) {
  using namespace tuza::net::testing;
  const auto found = host == nullptr ? answers_of_names().end() : answers_of_names().find(host);
  if (found != answers_of_names().end()) return answer(found->second, hints->ai_family, list);
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
