#include "page.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

static test_page *shared_page;
static _Thread_local int this_rank = -1;

test_page *test_page_get(void)
{
    if (!shared_page) {
        void *made = mmap(NULL, sizeof *shared_page, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        shared_page = made == MAP_FAILED ? NULL : made;
    }
    return shared_page;
}

void test_page_reset(void)
{
    memset(test_page_get(), 0, sizeof(test_page));
}

void test_this_is_rank(int rank)
{
    this_rank = rank;
}

static void record(const char *text)
{
    test_page *page = test_page_get();
    int index = atomic_fetch_add(&page->failures, 1);
    if (index >= TEST_MESSAGES)
        return;
    if (this_rank >= 0)
        snprintf(page->messages[index], TEST_MESSAGE_BYTES, "rank %d: %s", this_rank, text);
    else
        snprintf(page->messages[index], TEST_MESSAGE_BYTES, "%s", text);
}

void test_fail(const char *format, ...)
{
    char text[TEST_MESSAGE_BYTES - 32];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    record(text);
}

void test_skip(const char *format, ...)
{
    test_page *page = test_page_get();
    if (atomic_exchange(&page->skipped, 1))
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(page->skip_reason, sizeof page->skip_reason, format, arguments);
    va_end(arguments);
}

bool test_failed(void)
{
    return atomic_load(&test_page_get()->failures) > 0;
}

static const char *base_name(const char *file)
{
    const char *slash = strrchr(file, '/');
    return slash ? slash + 1 : file;
}

bool test_check(bool good, const char *file, int line, const char *what)
{
    if (!good)
        test_fail("%s:%d: not so: %s", base_name(file), line, what);
    return good;
}

bool test_check_status(coh_status got, coh_status expected, const char *file, int line,
                       const char *what)
{
    if (got != expected)
        test_fail("%s:%d: %s is %s, expected %s; last error: %s", base_name(file), line, what,
                  coh_status_name(got), coh_status_name(expected), coh_last_error());
    return got == expected;
}

bool test_holds(const char *text, const char *words)
{
    char word[128];
    while (*words) {
        size_t length = strcspn(words, "|");
        snprintf(word, sizeof word, "%.*s", (int)length, words);
        if (!strstr(text, word))
            return false;
        words += length + (words[length] == '|');
    }
    return true;
}

bool test_check_says(const char *words, const char *file, int line)
{
    bool good = test_holds(coh_last_error(), words);
    if (!good)
        test_fail("%s:%d: the last error lacks one of '%s': %s", base_name(file), line, words,
                  coh_last_error());
    return good;
}

bool test_check_refused(coh_status got, coh_status expected, const char *words, const char *file,
                        int line, const char *what)
{
    if (!test_check_status(got, expected, file, line, what))
        return false;
    bool good = test_holds(coh_last_error(), words);
    if (!good)
        test_fail("%s:%d: %s: the last error lacks one of '%s': %s", base_name(file), line, what,
                  words, coh_last_error());
    return good;
}

bool test_check_equal(uint64_t left, uint64_t right, const char *file, int line, const char *what)
{
    if (left != right)
        test_fail("%s:%d: not so: %s (%llu, %llu)", base_name(file), line, what,
                  (unsigned long long)left, (unsigned long long)right);
    return left == right;
}
