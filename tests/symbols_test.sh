#!/bin/sh
# symbols_test.sh LIBRARY - the library exports coh_* and its version node, and needs libc alone.
set -u

library=${1:?usage: symbols_test.sh LIBRARY}
exported=$(nm -D --defined-only "$library" | awk '{ print $NF }' | sed 's/@.*//' | sort -u)
if ! echo "$exported" | grep -qx 'coh_init'; then
    echo "$library does not export coh_init"
    exit 1
fi
strangers=$(echo "$exported" | grep -vE '^(coh_[a-z0-9_]+|COHORT_[0-9.]+)$')
if [ -n "$strangers" ]; then
    echo "$library exports what it should not:"
    echo "$strangers"
    exit 1
fi
needed=$(readelf -d "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
allowed='^(libc|libpthread|ld-linux[-a-z0-9_]*)\.so'
case $needed in
*libasan* | *libubsan* | *libtsan*) allowed='.' ;; # a sanitizer brings others along
esac
more=$(echo "$needed" | grep -vE "$allowed")
if [ -n "$more" ]; then
    echo "$library needs more than libc and pthreads: $more"
    exit 1
fi
echo "$(echo "$exported" | grep -c '^coh_') symbols, all coh_*"
