#!/usr/bin/env bash
# image-root.sh DIRECTORY PROGRAM...: makes the root file system of a minimal image. It contains only the stripped
# programs, the libraries they need with their licences, certificate authorities, and a user.
set -euo pipefail
root=$1
shift

# copy_licence FILE: copies the licence of the package that contains FILE. The name of FILE may leave out /usr.
copy_licence() {
  local package
  package=$(dpkg-query -S "$1" 2>/dev/null || dpkg-query -S "/usr$1" 2>/dev/null) || return 0
  package=${package%%:*}
  install -D -m 644 "/usr/share/doc/$package/copyright" "$root/usr/share/doc/$package/copyright"
}

mkdir -p "$root"/{etc/ssl/certs,usr/bin,proc,sys,dev}
install -d -m 1777 "$root/tmp" "$root/data"
for program in "$@"; do
  strip -o "$root/usr/bin/$(basename "$program")" "$program"
  # Both kinds of lines contain a path: "libm.so.6 => /lib/... (0x...)", and the loader's "/lib64/... (0x...)".
  for library in $(ldd "$program" | grep -o '/[^ ]*'); do
    install -D -m 755 "$library" "$root$library"
    copy_licence "$library"
  done
done

echo 'nonroot:x:65532:65532:nonroot:/:/usr/sbin/nologin' >"$root/etc/passwd"
echo 'nonroot:x:65532:' >"$root/etc/group"
echo 'hosts: files dns' >"$root/etc/nsswitch.conf"
if [[ -f /etc/ssl/certs/ca-certificates.crt ]]; then
  install -m 644 /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
  # Debian's OpenSSL reads this path. The package that owns the usual link is not in the image.
  install -d "$root/usr/lib/ssl"
  ln -s /etc/ssl/certs/ca-certificates.crt "$root/usr/lib/ssl/cert.pem"
fi
