# The Debian packages that Tuza needs, and functions that install them. Sourced by ./dev.

packages_build=(
  g++ cmake ninja-build
  libasio-dev libcli11-dev libspdlog-dev libssl-dev
  libtomlplusplus-dev prometheus-cpp-dev
  libsqlite3-dev nlohmann-json3-dev
  zlib1g-dev libbrotli-dev libzstd-dev libpsl-dev
)
packages_test=(  # of `./dev test`
  git python3 python3-yaml clang-format-19
  libgtest-dev curl openssl
  python3-websockets  # a client that is not ours
  ccache  # what was compiled once, with the same flags, is found by any clone of the same sources
)
packages_bench=(libbenchmark-dev)
packages_clang=(clang-19)
packages_all=(  # what `./dev test all` needs besides: its tests have the label `all`
  clang-19 clang-tidy-19
  gdb valgrind
  pkgconf fakeroot  # of the test `debian_package`
  haproxy systemd
  apache2-bin nginx-light nodejs  # servers that the HTTP client asks
  docker-compose prometheus  # of the test `compose`
  libpq-dev postgresql       # of the example postgres_notes
  redis-server               # of the test boost_redis
  chromium  # 360 MB with chromium-common: only a browser shows whether the page /debug/sched is drawn
)
packages_models=(spin)
packages_aarch64=(googletest g++-aarch64-linux-gnu qemu-user-static)
packages_port=(npm)  # from its registry comes Zig's compiler for macOS (.ci/port.py)
packages_load=(python3 strace wrk openssl nginx-light haproxy testssl.sh)
packages_database=(libpq-dev postgresql golang-github-lib-pq-dev)  # of `./dev load database`; the last one for Go
packages_docs=(doxygen python3)
packages_fuzz=(clang-19 libclang-rt-19-dev llvm-19 python3)
# Without netavark, which Debian 13's buildah only recommends, buildah does not even make an empty container.
packages_docker=(git python3 buildah netavark debootstrap debian-archive-keyring)

# Boost.Asio has cancellation slots since 1.77, and Boost has Redis since 1.84. Debian 12's libboost-dev is 1.74, that of 13
# is 1.83.
boost_package() {
  local version
  for version in 1.88 1.81; do
    if apt-cache show "libboost$version-dev" >/dev/null 2>&1; then echo "libboost$version-dev"; return; fi
  done
  echo libboost-dev
}

# llhttp has a package of its own only since Debian 13; Debian 12 ships its sources with Node's. apt's lists may be
# empty: then the release decides.
llhttp_package() {
  local version
  if apt-cache show libllhttp-dev >/dev/null 2>&1; then
    echo libllhttp-dev
  elif apt-cache show node-llhttp >/dev/null 2>&1; then
    echo node-llhttp
  else
    version=$(. "${OS_RELEASE:-/etc/os-release}" 2>/dev/null && echo "${VERSION_ID:-}")
    if [[ $version == 12 ]]; then echo node-llhttp; else echo libllhttp-dev; fi
  fi
}

installed() { [[ "$(dpkg-query -W -f='${Status}' "$1" 2>/dev/null)" == "install ok installed" ]]; }

missing_of() {
  local set package
  for set in "$@"; do
    local -n packages=packages_$set
    for package in "${packages[@]}"; do installed "$package" || echo "$package"; done
  done
  for set in "$@"; do
    if [[ $set == all ]] && ! installed libboost1.81-dev && ! installed "$(boost_package)"; then boost_package; fi
    if [[ $set == build ]] && ! installed libllhttp-dev && ! installed node-llhttp; then llhttp_package; fi
  done
}

# need <set>...: installs the missing packages of these sets, and says before how many and how large. If none is
# missing, it is quick and silent, and needs no privileges. apt's output goes to build/packages.log.
need() {
  if ! command -v dpkg-query >/dev/null; then
    echo "dev: not a Debian system, so nothing is installed; needed are: ${packages_build[*]} libllhttp-dev" >&2
    return
  fi
  local missing=() as_root=() log=build/packages.log
  mapfile -t missing < <(missing_of "$@" | sort -u)
  [[ ${#missing[@]} -eq 0 ]] && return
  if [[ $(id -u) -ne 0 ]]; then
    if ! command -v sudo >/dev/null; then
      echo "dev: packages are missing, and there is no sudo. As root: apt-get install ${missing[*]}" >&2
      exit 1
    fi
    as_root=(sudo)
  fi
  mkdir -p build
  echo "dev: installing ${missing[*]}" >&2
  # Without a network this succeeds with warnings; then the packages may still be in apt's cache.
  "${as_root[@]}" apt-get update -qq >"$log" 2>&1 || true
  mapfile -t missing < <(missing_of "$@" | sort -u)  # the lists now tell the name of llhttp's package
  local install=("${as_root[@]}" env LC_ALL=C DEBIAN_FRONTEND=noninteractive apt-get install --no-install-recommends)
  "${install[@]}" --assume-no "${missing[@]}" 2>>"$log" | tee -a "$log" | size_of_installation >&2 || true
  if ! "${install[@]}" -y -qq "${missing[@]}" >>"$log" 2>&1; then
    grep -m3 -E "^E: " "$log" >&2 || true
    echo "dev: apt-get could not install the packages: is there a network? Its output is in $log. As root:" \
      "apt-get install ${missing[*]}" >&2
    exit 1
  fi
  if [[ -d /run/systemd/system && " ${missing[*]} " == *" prometheus "* ]]; then
    echo "dev: the packages prometheus, haproxy, nginx, postgresql and redis-server have started services, of which no test needs" \
      "any; to stop them: systemctl disable --now prometheus haproxy nginx postgresql redis-server" >&2
  fi
}

# From apt-get's forecast: "dev: 126 packages, 160 MB to download, 650 MB on disk: about 2 minutes". The time is that of
# two cores, with a mirror that gives 10 MB/s.
size_of_installation() {
  awk '
    function megabytes(number, unit) {
      gsub(",", "", number)
      return number * (unit == "GB" ? 1000 : unit == "MB" ? 1 : unit == "kB" ? 0.001 : 0)
    }
    / newly installed/ { for (i = 2; i <= NF; i++) if ($i == "newly") packages = $(i - 1) }
    /^Need to get / { sub("/.*", "", $5); download = $4 " " $5; seconds += megabytes($4, $5) / 10 }  # 722 kB/60.3 MB
    /^After this operation, / { disk = $4 " " $5; seconds += megabytes($4, $5) / 10 }
    END {
      minutes = int(seconds / 60 + 1)
      printf "dev: %s packages, %s to download, %s on disk: about %s\n", packages, download, disk,
        minutes == 1 ? "a minute" : minutes " minutes"
    }'
}
