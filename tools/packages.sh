# SPDX-License-Identifier: MIT
# packages.sh - what Petrel needs from Debian 12, and how it gets there; sourced by quickstart and check.
# shellcheck shell=bash

# Rows: package. Run: what a build and its programs need. Check: what the tests need on top.
packages_run="gcc libc6-dev pkg-config meson ninja-build python3 clang lld libdrm-dev libelf-dev libdw-dev libpopt-dev libjson-c-dev zlib1g-dev
libinih-dev"
packages_check="$packages_run libcmocka-dev binutils libvulkan-dev help2man man-db qemu-user libmpfr-dev
libclang-rt-14-dev llvm-14 picolibc-riscv64-unknown-elf"

packages_missing() {
    local p missing=()
    for p in "$@"; do
        dpkg-query -W -f='${db:Status-Status}' "$p" 2>/dev/null | grep -qx installed || missing+=("$p")
    done
    echo "${missing[*]}"
}

# Installs what is missing; a user who may not gets the list and exit status 2.
packages_ensure() {
    local missing sudo=()
    missing=$(packages_missing "$@")
    [ -z "$missing" ] && return 0
    if [ "$(id -u)" -ne 0 ]; then
        if command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
            sudo=(sudo -n env)
        else
            {
                echo "These Debian packages are missing, and this user may not install them. As root, run:"
                echo "  apt-get install $missing"
            } >&2
            exit 2
        fi
    fi
    echo "Installing from Debian: $missing"
    # shellcheck disable=SC2086  # a list of words
    { "${sudo[@]}" apt-get update -qq &&
        "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing; } >"${TMPDIR:-/tmp}/petrel-apt.$$" 2>&1 || {
        echo "The packages could not be installed; what apt-get said:" >&2
        tail -n 20 "${TMPDIR:-/tmp}/petrel-apt.$$" >&2
        rm -f "${TMPDIR:-/tmp}/petrel-apt.$$"
        exit 2
    }
    rm -f "${TMPDIR:-/tmp}/petrel-apt.$$"
}
