// Public header.
//
// Addresses for Asio, and back: for the endpoints of any of its protocols, and of Boost's.
//
//     const tuza::net::Endpoint server = tuza::net::resolve("db.example.org:5432").value();
//     auto connected = socket.async_connect(tuza::to_asio<asio::ip::tcp>(server), tuza::use_goroutine);
//
// Thread-safe.
#pragma once

#include <tuza/netpoll/endpoint.h>

#include <cstring>
#include <optional>

namespace tuza {

// `Protocol`: asio::ip::tcp, boost::asio::ip::udp and others with an address of IP and a port.
template <class Protocol>
[[nodiscard]] typename Protocol::endpoint to_asio(const net::Endpoint& endpoint) {
  struct sockaddr_storage name;
  const socklen_t length = net::to_sockaddr(endpoint, name);
  typename Protocol::endpoint result;
  std::memcpy(result.data(), &name, length);
  result.resize(length);
  return result;
}

template <class AsioEndpoint>
[[nodiscard]] net::Endpoint from_asio(const AsioEndpoint& endpoint) {
  return net::from_sockaddr(endpoint.data(), static_cast<socklen_t>(endpoint.size()))
      .value_or(net::Endpoint());
}

}  // namespace tuza
