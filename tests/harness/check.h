/*
 * check.h - what a rank found. Checks record and return whether all was well; none returns for
 * the caller.
 *
 * Findings go to memory that the whole run shares, with file, line, rank and the last error, and
 * are printed by the parent after the run.
 */
#ifndef TEST_CHECK_H
#define TEST_CHECK_H

#include <cohort.h>
#include <stdbool.h>
#include <stdint.h>

#if defined(__SANITIZE_ADDRESS__)
#define TEST_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TEST_ASAN 1
#endif
#endif

#if defined(__SANITIZE_THREAD__)
#define TEST_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TEST_TSAN 1
#endif
#endif

#ifndef TEST_ASAN
#define TEST_ASAN 0
#endif
#ifndef TEST_TSAN
#define TEST_TSAN 0
#endif
#define TEST_SANITIZED (TEST_ASAN || TEST_TSAN)

#define CHECK(condition) test_check((condition), __FILE__, __LINE__, #condition)

#define CHECK_OK(call) test_check_status((call), COH_OK, __FILE__, __LINE__, #call)

#define CHECK_STATUS(call, expected) \
    test_check_status((call), (expected), __FILE__, __LINE__, #call)

/* The call fails with that status and its error message holds every one of the words, which are
 * separated by '|'. */
#define CHECK_REFUSED(call, expected, words) \
    test_check_refused((call), (expected), (words), __FILE__, __LINE__, #call)

#define CHECK_EQ(left, right) \
    test_check_equal((uint64_t)(left), (uint64_t)(right), __FILE__, __LINE__, #left " == " #right)

/* The last error holds every word. */
#define CHECK_SAYS(words) test_check_says((words), __FILE__, __LINE__)

bool test_check(bool good, const char *file, int line, const char *what);
bool test_check_status(coh_status got, coh_status expected, const char *file, int line,
                       const char *what);
bool test_check_refused(coh_status got, coh_status expected, const char *words, const char *file,
                        int line, const char *what);
bool test_check_equal(uint64_t left, uint64_t right, const char *file, int line, const char *what);
bool test_check_says(const char *words, const char *file, int line);

/* Records a failure in words. */
void test_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Whether `text` holds every word of the list. */
bool test_holds(const char *text, const char *words);

/* Whether any rank of the run has recorded a failure. */
bool test_failed(void);

/* Which rank the calling thread is, for the reports. */
void test_this_is_rank(int rank);

#endif
