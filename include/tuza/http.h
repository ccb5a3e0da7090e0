// Umbrella header of tuza::http: the server, its router, requests and responses, middleware, static files.
#pragma once

#include <tuza/sched/detail/language.h>  // first

#include <tuza/http/client.h>
#include <tuza/http/cookie.h>
#include <tuza/http/cookie_signer.h>
#include <tuza/http/credentials.h>
#include <tuza/http/file_server.h>
#include <tuza/http/handler.h>
#include <tuza/http/header_range.h>
#include <tuza/http/hijacked_stream.h>
#include <tuza/http/json_codec.h>
#include <tuza/http/key.h>
#include <tuza/http/method.h>
#include <tuza/http/middleware.h>
#include <tuza/http/middleware/access_log.h>
#include <tuza/http/middleware/basic_auth.h>
#include <tuza/http/middleware/body_limit.h>
#include <tuza/http/middleware/compress.h>
#include <tuza/http/middleware/cors.h>
#include <tuza/http/middleware/csrf.h>
#include <tuza/http/middleware/decompress.h>
#include <tuza/http/middleware/etag.h>
#include <tuza/http/middleware/rate_limit.h>
#include <tuza/http/middleware/real_ip.h>
#include <tuza/http/middleware/recover.h>
#include <tuza/http/middleware/request_id.h>
#include <tuza/http/middleware/secure_headers.h>
#include <tuza/http/middleware/stack_size.h>
#include <tuza/http/middleware/timeout.h>
#include <tuza/http/multipart.h>
#include <tuza/http/negotiate.h>
#include <tuza/http/options.h>
#include <tuza/http/refused_request.h>
#include <tuza/http/request.h>
#include <tuza/http/response_writer.h>
#include <tuza/http/reverse_proxy.h>
#include <tuza/http/router.h>
#include <tuza/http/server.h>
#include <tuza/http/server_stats.h>
#include <tuza/http/sse.h>
#include <tuza/http/status.h>
#include <tuza/http/status_error.h>
#include <tuza/http/url.h>
#include <tuza/http/values.h>
#include <tuza/http/websocket.h>
