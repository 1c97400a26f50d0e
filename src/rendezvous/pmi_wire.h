/*
 * pmi_wire.h - lines of PMI-1, "cmd=get_result rc=0 msg=success value=..." and a newline, as a process
 * and its launcher exchange them.
 *
 * What comes is not trusted: the descriptor may be another file's by now.
 */
#ifndef COHI_RENDEZVOUS_PMI_WIRE_H
#define COHI_RENDEZVOUS_PMI_WIRE_H

#include <stdbool.h>
#include <stddef.h>

enum { COHI_PMI_LINE_BYTES = 4096 }; /* launchers promise values of 1,024 at most */

/* What was received and not read yet. */
typedef struct cohi_pmi_reader {
    size_t got;
    char bytes[COHI_PMI_LINE_BYTES];
} cohi_pmi_reader;

typedef enum cohi_pmi_read { COHI_PMI_PARTIAL, COHI_PMI_LINE, COHI_PMI_STRANGE } cohi_pmi_read;

/* Where the next bytes are received, and how many fit: 0 only after COHI_PMI_STRANGE. */
char *cohi_pmi_room(cohi_pmi_reader *reader, size_t *room);

/* Takes the next line, without its newline and with a NUL. COHI_PMI_STRANGE: it is too long, or has
 * a NUL in it. */
cohi_pmi_read cohi_pmi_take_line(cohi_pmi_reader *reader, char line[COHI_PMI_LINE_BYTES]);

/* Copies the value of a word "key=value" of the line. False where there is none, or it does not fit. */
bool cohi_pmi_field(const char *line, const char *key, char *value, size_t room);

/* The same, of a value that is a whole number of at most nine digits, perhaps negative. */
bool cohi_pmi_number(const char *line, const char *key, long *value);

#endif
