// Umbrella header of tuza::http: the server, its router, requests and responses, middleware, static files.
#pragma once

#include <tuza/http/file_server.h>
#include <tuza/http/handler.h>
#include <tuza/http/method.h>
#include <tuza/http/middleware.h>
#include <tuza/http/options.h>
#include <tuza/http/request.h>
#include <tuza/http/response_writer.h>
#include <tuza/http/router.h>
#include <tuza/http/server.h>
#include <tuza/http/server_stats.h>
#include <tuza/http/status.h>
