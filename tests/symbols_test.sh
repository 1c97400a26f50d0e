#!/bin/sh
# symbols_test.sh LIBRARY [MODULE...] - the library exports coh_* and its version node, and needs libc alone; a module exports
# cohort_module, and does not need the library.
set -u

library=${1:?usage: symbols_test.sh LIBRARY [MODULE...]}
shift
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
for module; do
    symbols=$(nm -D --defined-only "$module" | awk '{ print $NF }')
    if [ "$symbols" != cohort_module ]; then
        echo "$module exports: $symbols"
        exit 1
    fi
    if readelf -d "$module" | grep -q 'NEEDED.*libcohort'; then
        echo "$module needs the library, which a static program has inside"
        exit 1
    fi
done
echo "$(echo "$exported" | grep -c '^coh_') symbols, all coh_*"
