// Umbrella header of tuza::netpoll: connections, listeners, TLS, files, directories, processes, signals.
#pragma once

#include <tuza/sched/detail/language.h>  // first

#include <tuza/netpoll/buf_reader.h>
#include <tuza/netpoll/buf_writer.h>
#include <tuza/netpoll/conn.h>
#include <tuza/netpoll/conn_handler.h>
#include <tuza/netpoll/conn_stream.h>
#include <tuza/netpoll/copy.h>
#include <tuza/netpoll/dial.h>
#include <tuza/netpoll/directory.h>
#include <tuza/netpoll/endpoint.h>
#include <tuza/netpoll/file.h>
#include <tuza/netpoll/file_info.h>
#include <tuza/netpoll/file_slice.h>
#include <tuza/netpoll/filesystem.h>
#include <tuza/netpoll/inherited.h>
#include <tuza/netpoll/ip_address.h>
#include <tuza/netpoll/listen_and_serve.h>
#include <tuza/netpoll/listener.h>
#include <tuza/netpoll/network.h>
#include <tuza/netpoll/peer_watch.h>
#include <tuza/netpoll/pipe.h>
#include <tuza/netpoll/process.h>
#include <tuza/netpoll/proxy_protocol.h>
#include <tuza/netpoll/serve.h>
#include <tuza/netpoll/signals.h>
#include <tuza/netpoll/tls.h>
#include <tuza/netpoll/wait_fd.h>
