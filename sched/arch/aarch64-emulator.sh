#!/bin/sh
# aarch64-emulator.sh <qemu> <program> <argument>...: runs an aarch64 program under qemu-user.
#
# Death tests start their program a second time, by the name they were started under. The kernel cannot run an
# aarch64 program by name (no binfmt_misc in most containers), so the name they are given is that of this
# script, and what it needs to know the second time is in the environment.
#
# -cpu max has everything an aarch64 processor may have: landing pads are checked, return addresses signed.
# pauth-impdef: with a signature that is quick to emulate.
case $1 in
  --*) ;;
  *)
    TUZA_EMULATOR=$1 TUZA_EMULATED=$2
    export TUZA_EMULATOR TUZA_EMULATED
    shift 2
    ;;
esac
exec "$TUZA_EMULATOR" -cpu max,pauth-impdef=on -L /usr/aarch64-linux-gnu -0 "$0" "$TUZA_EMULATED" "$@"
