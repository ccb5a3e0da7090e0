// Umbrella header of tuza::netpoll: connections, listeners, TLS, files, directories, signals.
#pragma once

#include <tuza/netpoll/directory.h>
#include <tuza/netpoll/endpoint.h>
#include <tuza/netpoll/file.h>
#include <tuza/netpoll/file_info.h>
#include <tuza/netpoll/filesystem.h>
#include <tuza/netpoll/inherited.h>
#include <tuza/netpoll/serve.h>
#include <tuza/netpoll/signals.h>
#include <tuza/netpoll/tcp.h>
#include <tuza/netpoll/tls.h>
