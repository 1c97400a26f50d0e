/*
 * copy_forms.h - the loops that copy host memory, as rows of one table.
 *
 * Which is fastest depends on the CPU, on how much is copied and on where it lies: that is the
 * profile's to say (profile.h). All of them copy the same bytes.
 */
#ifndef COHI_MEMORY_COPY_FORMS_H
#define COHI_MEMORY_COPY_FORMS_H

#include <stdbool.h>
#include <stddef.h>

/*
 * X(form, name, bits of its vectors, streams, pages side by side). A form that streams stores past
 * the caches. With several pages side by side it copies two lines of each in turn, which keeps more
 * banks of the memory open: the fastest on Sapphire Rapids from 64 MiB on, a third of the speed of
 * one line of addresses on Zen 3.
 */
#define COHI_COPY_FORM_TABLE(X)                         \
    X(LIBC, "libc", 0, false, 0)                        \
    X(REP_MOVSB, "rep-movsb", 0, false, 0)              \
    X(PLAIN_256, "plain-256", 256, false, 0)            \
    X(PLAIN_512, "plain-512", 512, false, 0)            \
    X(STREAM_256, "stream-256", 256, true, 1)           \
    X(STREAM_256_2, "stream-256-2-pages", 256, true, 2) \
    X(STREAM_256_4, "stream-256-4-pages", 256, true, 4) \
    X(STREAM_512, "stream-512", 512, true, 1)           \
    X(STREAM_512_2, "stream-512-2-pages", 512, true, 2) \
    X(STREAM_512_4, "stream-512-4-pages", 512, true, 4)

typedef enum cohi_copy_form {
#define COHI_COPY_FORM_ENUM(form, name, bits, streams, pages) COHI_COPY_##form,
    COHI_COPY_FORM_TABLE(COHI_COPY_FORM_ENUM)
#undef COHI_COPY_FORM_ENUM
        COHI_COPY_FORMS
} cohi_copy_form;

/* "stream-256"; NULL past the last. */
const char *cohi_copy_form_name(unsigned form);

/* Whether this CPU and this build have it. COHI_COPY_LIBC is always there. */
bool cohi_copy_form_available(unsigned form);

/* Whether it stores past the caches. */
bool cohi_copy_form_streams(unsigned form);

/* The streaming form to begin with where nothing was measured: one line of addresses, which no CPU
 * is slow with. COHI_COPY_LIBC where there is none. */
cohi_copy_form cohi_copy_form_streamed(void);

/*
 * Copies as memmove does: ranges that overlap, and what is too short for the form, are left to
 * memmove. The form must be available. Streamed stores are ordered before whatever follows.
 */
void cohi_copy_by(cohi_copy_form form, void *target, const void *source, size_t bytes);

#endif
