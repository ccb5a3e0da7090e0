# The Debian packages that Tuza needs, and functions that install them. Sourced by ./dev.

packages_build=(
  g++ cmake ninja-build
  libasio-dev libcli11-dev libspdlog-dev libssl-dev
  libtomlplusplus-dev prometheus-cpp-dev
  libsqlite3-dev nlohmann-json3-dev
)
packages_test=(
  git python3 clang-format-19
  libgtest-dev googletest libbenchmark-dev
  gdb strace spin
  curl openssl
  g++-aarch64-linux-gnu qemu-user-static
  haproxy python3-yaml systemd
  chromium  # 360 MB with chromium-common: only a browser shows whether the page /debug/sched is drawn
)
packages_load=(python3 strace wrk openssl nginx-light haproxy testssl.sh)
packages_docs=(doxygen python3)
packages_docker=(python3 buildah debootstrap debian-archive-keyring)

# llhttp has a package of its own only since Debian 13; Debian 12 ships its sources with Node's.
llhttp_package() {
  if apt-cache show libllhttp-dev >/dev/null 2>&1; then echo libllhttp-dev; else echo node-llhttp; fi
}

installed() { [[ "$(dpkg-query -W -f='${Status}' "$1" 2>/dev/null)" == "install ok installed" ]]; }

missing_of() {
  local set package
  for set in "$@"; do
    local -n packages=packages_$set
    for package in "${packages[@]}"; do installed "$package" || echo "$package"; done
  done
  for set in "$@"; do
    if [[ $set == build ]] && ! installed libllhttp-dev && ! installed node-llhttp; then echo llhttp; fi
  done
}

# need <set>...: installs the missing packages of these sets. If none is missing, it is quick and silent, and needs no
# privileges.
need() {
  if ! command -v dpkg-query >/dev/null; then
    echo "dev: not a Debian system, so nothing is installed; needed are: ${packages_build[*]} and llhttp" >&2
    return
  fi
  local missing=() as_root=()
  mapfile -t missing < <(missing_of "$@" | sort -u)
  [[ ${#missing[@]} -eq 0 ]] && return
  if [[ $(id -u) -ne 0 ]]; then
    command -v sudo >/dev/null || { echo "dev: as root: apt-get install ${missing[*]}" >&2; exit 1; }
    as_root=(sudo)
  fi
  echo "dev: installing ${missing[*]}" >&2
  "${as_root[@]}" apt-get update -qq >&2
  missing=("${missing[@]/#llhttp/$(llhttp_package)}")
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2
}
