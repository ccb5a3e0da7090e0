#!/usr/bin/env bash
# image-root.sh DIRECTORY PROGRAM...: makes the root file system of an image with nothing in it but these programs,
# stripped, the libraries they need with their licences, certificate authorities, and a user.
set -euo pipefail
root=$1
shift

# copy_licence FILE: that of the package the file is from. The file's name may leave out /usr.
copy_licence() {
  local package
  package=$(dpkg-query -S "$1" 2>/dev/null || dpkg-query -S "/usr$1" 2>/dev/null) || return 0
  package=${package%%:*}
  install -D -m 644 "/usr/share/doc/$package/copyright" "$root/usr/share/doc/$package/copyright"
}

mkdir -p "$root"/{etc/ssl/certs,usr/bin,proc,sys,dev}
install -d -m 1777 "$root/tmp"
for program in "$@"; do
  strip -o "$root/usr/bin/$(basename "$program")" "$program"
  # Both kinds of lines name a path: "libm.so.6 => /lib/... (0x...)", and the loader's "/lib64/... (0x...)".
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
  # Where Debian's OpenSSL looks: its own link belongs to a package that is not here.
  install -d "$root/usr/lib/ssl"
  ln -s /etc/ssl/certs/ca-certificates.crt "$root/usr/lib/ssl/cert.pem"
fi
