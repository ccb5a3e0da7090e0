"""Servers that are not ours, each in a temporary folder with the same files: Apache, nginx, Node, HAProxy, `openssl s_server`
and Python's http.server.
"""

import contextlib
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time

PATIENCE_S = 60
FILES = {
    "small.txt": b"small\n",
    "large.txt": b"".join(b"line %d\n" % (i * 7919 % 100_003) for i in range(300_000)),  # 3 MB that compress well
    "folder/index.html": b"<p>folder\n",
}
# Apache refuses to be root, and nginx changes to another user by itself, who may not write into the folder.
NOBODY = {"user": "nobody", "group": "nogroup", "extra_groups": []} if os.geteuid() == 0 else {}


def program(name, package):
    path = shutil.which(name, path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin")
    if path is None:
        sys.exit(f"{name} is missing. Package: {package}. `./dev setup` installs it.")
    return path


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def listens(port):
    with contextlib.suppress(ConnectionError), socket.create_connection(("127.0.0.1", port), PATIENCE_S):
        return True
    return False


class Folder:
    """A folder with the files, and a certificate for localhost and for clients."""

    def __init__(self):
        self.removed = tempfile.TemporaryDirectory(prefix="tuza-servers-")
        self.path = pathlib.Path(self.removed.name)
        self.root = self.path / "root"
        for name, content in FILES.items():
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).write_bytes(content)
        for folder in "upload", "work":
            (self.path / folder).mkdir()
        (self.root / "upload").symlink_to(self.path / "upload")
        self.certificate, self.key = self.path / "site.pem", self.path / "site.key"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                        "-keyout", self.key, "-out", self.certificate, "-days", "30", "-subj", "/CN=localhost",
                        "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"], check=True, capture_output=True)
        (self.path / "both.pem").write_bytes(self.certificate.read_bytes() + self.key.read_bytes())
        (self.path / "log").touch()
        if NOBODY:
            for path in [self.path, *self.path.rglob("*")]:
                shutil.chown(path, NOBODY["user"], NOBODY["group"])

    def remove(self):
        self.removed.cleanup()


class Server:
    """One that runs until stop(). `command` names its configuration, if it has one, {configuration}."""

    command, configuration, identity = [], "", {}

    def __init__(self, **values):
        self.folder = Folder()
        self.port, self.tls_port = free_port(), free_port()
        self.values = {"folder": self.folder.path, "root": self.folder.root, "port": self.port, "tls_port": self.tls_port,
                       "configuration": self.folder.path / "configuration"} | values
        text = self.configuration
        for name, value in self.values.items():
            text = text.replace(f"@{name}@", str(value))
        self.values["configuration"].write_text(text)
        self.start()

    def start(self):
        self.log = open(self.folder.path / "log", "ab")
        self.process = subprocess.Popen([word.format(**self.values) for word in self.command], stdin=subprocess.PIPE,
                                        stdout=self.log, stderr=self.log, cwd=self.folder.path, **self.identity)
        deadline = time.monotonic() + PATIENCE_S
        while not all(map(listens, self.ports())):
            if self.process.poll() is not None or time.monotonic() > deadline:
                said = (self.folder.path / "log").read_text()
                self.stop()
                raise AssertionError(f"{type(self).__name__} does not start: {said}")
            time.sleep(0.02)

    def ports(self):
        return self.port, self.tls_port

    def end(self):
        self.process.terminate()
        self.process.wait(PATIENCE_S)
        self.process.stdin.close()
        self.log.close()

    def stop(self):
        self.end()
        self.folder.remove()

    def url(self, target):
        return f"http://127.0.0.1:{self.port}{target}"

    def tls_url(self, target):
        return f"https://localhost:{self.tls_port}{target}"


class Apache(Server):
    """Besides files: /upload takes them, /reflect answers the request's body, and it is a proxy for its clients."""

    identity = NOBODY
    command = ["apache2", "-d", "{folder}", "-f", "{configuration}", "-DFOREGROUND"]
    configuration = "".join(f"LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so\n" for name in (
        "mpm_event", "authz_core", "dir", "mime", "filter", "deflate", "brotli", "dav", "dav_fs", "ssl", "reflector",
        "proxy", "proxy_http", "proxy_connect")) + """
ServerName localhost
DefaultRuntimeDir @folder@/work
PidFile @folder@/work/pid
ErrorLog @folder@/log
Mutex file:@folder@/work default
Listen 127.0.0.1:@port@
Listen 127.0.0.1:@tls_port@
MaxKeepAliveRequests 4
DocumentRoot @root@
TypesConfig /dev/null
AddType text/plain .txt
AddType text/html .html
AddOutputFilterByType BROTLI_COMPRESS;DEFLATE text/plain
DavLockDB @folder@/work/locks
LimitRequestBody 10000000
<Location /upload>
  Dav On
</Location>
<Location /reflect>
  SetHandler reflector
</Location>
ProxyRequests On
ProxyVia On
AllowCONNECT @others@
<VirtualHost *:@tls_port@>
  SSLEngine On
  SSLCertificateFile @folder@/site.pem
  SSLCertificateKeyFile @folder@/site.key
  SSLCACertificateFile @folder@/site.pem
  SSLVerifyClient @verify@
</VirtualHost>
"""


class Nginx(Server):
    """Besides files: /upload takes them, at most 10 MB each."""

    identity = NOBODY
    command = ["nginx", "-p", "{folder}", "-c", "{configuration}", "-e", "{folder}/log", "-g", "daemon off;"]
    configuration = """
pid work/pid;
events {}
http {
  access_log off;
  client_body_temp_path work/body; proxy_temp_path work/proxy; fastcgi_temp_path work/fastcgi;
  uwsgi_temp_path work/uwsgi; scgi_temp_path work/scgi;
  keepalive_requests 4;
  types { text/plain txt; text/html html; }
  gzip on;
  gzip_types text/plain;
  client_max_body_size 10m;
  server {
    listen 127.0.0.1:@port@;
    listen unix:@folder@/work/socket;
    listen 127.0.0.1:@tls_port@ ssl;
    ssl_certificate site.pem;
    ssl_certificate_key site.key;
    ssl_client_certificate site.pem;
    ssl_verify_client @verify@;
    root @root@;
    location /upload/ { dav_methods PUT DELETE; }
  }
}
"""


class Node(Server):
    """A program of its own: what it does for each path stands in other_servers.js."""

    command = ["node", str(pathlib.Path(__file__).with_name("other_servers.js")), "{port}", "{tls_port}", "{folder}"]


class Haproxy(Server):
    """In front of 127.0.0.1:@upstream@, and /own is an answer of itself."""

    command = ["haproxy", "-db", "-f", "{configuration}"]
    configuration = """
defaults
  mode http
  timeout connect 10s
  timeout client 60s
  timeout server 60s
  timeout http-request 60s
frontend clients
  bind 127.0.0.1:@port@
  bind 127.0.0.1:@tls_port@ ssl crt @folder@/both.pem
  http-request return status 200 content-type text/plain string "own" hdr X-By haproxy if { path /own }
  use_backend nobody if { path /nobody }
  default_backend upstream
backend upstream
  http-reuse always
  server upstream 127.0.0.1:@upstream@
backend nobody
  server nobody 127.0.0.9:@port@
"""


class Python(Server):
    """HTTP/1.0: a body ends with its connection."""

    command = [sys.executable, "-m", "http.server", "--bind", "127.0.0.1", "--directory", "{root}", "{port}"]

    def ports(self):
        return (self.port,)


class Openssl(Server):
    """Files over TLS by HTTP/1.0. `words`: more of its options."""

    def __init__(self, *words):
        self.command = ["openssl", "s_server", "-quiet", "-accept", "127.0.0.1:{tls_port}", "-cert", "{folder}/site.pem",
                        "-key", "{folder}/site.key", "-CAfile", "{folder}/site.pem", *words]
        super().__init__()

    def ports(self):
        return (self.tls_port,)
