"""Other servers for comparison, if they are installed: nginx, and net/http of Go. With TLS, or without."""

import shutil
from pathlib import Path

from lib import golang, process, servers

GO_SOURCE = Path(__file__).resolve().parents[1] / "http_go"
# The settings of a careful administrator for small answers from memory: one worker, because nginx gets one CPU; no log;
# no limit on the requests of a connection. Tickets are on, as in the other servers.
NGINX = """daemon off;
worker_processes 1;
pid {dir}/nginx.pid;
error_log stderr;
events { worker_connections 30000; }
http {
  access_log off;
  keepalive_requests 1000000000;
  keepalive_timeout 600s;
  client_body_temp_path {dir}/body;
  proxy_temp_path {dir}/proxy;
  fastcgi_temp_path {dir}/fastcgi;
  uwsgi_temp_path {dir}/uwsgi;
  scgi_temp_path {dir}/scgi;
  @OUTSIDE
  server {
    listen 127.0.0.1:{port} @SSL backlog=4096;
    @KEYS
    @LOCATIONS
  }
}
"""
PLAINTEXT = 'location = /plaintext { default_type text/plain; return 200 "Hello, World!"; }'


def nginx(certificate=None, locations=PLAINTEXT, name="nginx", outside=""):
    """The Spec of nginx, or None if it is not installed. `locations`: of its server; `outside`: beside it. With {port} and {dir}."""
    program = shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin")
    if program is None:
        return None
    ssl = ""
    if certificate:
        ssl = f"ssl_certificate {certificate.certificate}; ssl_certificate_key {certificate.key}; ssl_protocols TLSv1.3;"
    text = NGINX.replace("@SSL", "ssl" if certificate else "").replace("@KEYS", ssl)
    text = text.replace("@LOCATIONS", locations).replace("@OUTSIDE", outside)
    return servers.Spec(name, (program, "-e", "stderr", "-p", "{dir}", "-c", "{dir}/nginx.conf"),
                        "https" if certificate else "http", (("nginx.conf", text),))


def go(args, certificate=None):
    """(Spec or None, the reason why there is none)"""
    program, why = golang.build(args, GO_SOURCE, process.allowed_cpus()[2])
    if not program:
        return None, why
    words = [program, "-addr", "127.0.0.1:{port}"]
    if certificate:
        words += ["-cert", str(certificate.certificate), "-key", str(certificate.key)]
    return servers.Spec("go", tuple(words), "https" if certificate else "http"), ""


def hello(args, certificate):
    """The Spec of Tuza's server, over TLS."""
    words = servers.parse_specs(servers.OURS, args.build)[0].command
    return servers.Spec(servers.OURS, (*words, "--set", f"tls.certificate={certificate.certificate}", "--set",
                                       f"tls.key={certificate.key}"), "https")


def installed(args, report, certificate=None):
    """The Specs of the installed servers; reports which ones are missing."""
    found = []
    if server := nginx(certificate):
        found.append(server)
    else:
        report.say("", "nginx: not installed, so there is no comparison with it")
    server, why = go(args, certificate)
    if server:
        found.append(server)
    else:
        report.say("", why)
    return found
