// Public header.
//
// A boost::asio::io_context with its own thread: tuza::AsioContext (framework/asio_context.h) for Boost's Asio. All that
// is said there holds here.
#pragma once

#include <tuza/sched/detail/language.h>  // first

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>

#include <tuza/framework/detail/asio_thread.h>

namespace tuza {

class BoostAsioContext {
 public:
  // Call on a goroutine. Throws std::system_error if no thread or no descriptor is available.
  BoostAsioContext() = default;
  // Ends the thread, then destroys pending operations. Call on a goroutine. Parks.
  ~BoostAsioContext() = default;
  BoostAsioContext(const BoostAsioContext&) = delete;
  BoostAsioContext& operator=(const BoostAsioContext&) = delete;

  [[nodiscard]] boost::asio::io_context& io() { return io_; }
  [[nodiscard]] boost::asio::io_context::executor_type get_executor() { return io_.get_executor(); }

 private:
  boost::asio::io_context io_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{io_.get_executor()};
  detail::AsioThread thread_{[this] { io_.run(); }, [this] { io_.stop(); }};
};

}  // namespace tuza
