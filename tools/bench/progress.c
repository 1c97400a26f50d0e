/* bench/progress.c - one line on a terminal: how far it is, and how long it will take. */
#include "bench/bench.h"

#include "base/clock.h"

#include <sys/ioctl.h>
#include <unistd.h>

enum { BAR = 24, SHOW_MS = 100, NARROWEST = 40 };

static struct {
    int shown; /* standard error is a terminal */
    double total, done, current;
    uint64_t start_ns, last_ns;
} progress;

void cohi_bench_progress_begin(double total)
{
    progress.shown = isatty(STDERR_FILENO);
    progress.total = total;
    progress.done = progress.current = 0;
    progress.start_ns = cohi_now_ns();
    progress.last_ns = 0;
}

/* What is left, by what it took so far; a little done says nothing yet. */
static void left_text(uint64_t now, char *text, size_t room)
{
    double elapsed = (double)(now - progress.start_ns) / (double)COHI_NS_PER_S;
    text[0] = '\0';
    if (progress.done < progress.total / 50 || progress.done <= 0)
        return;
    int left = (int)(elapsed * (progress.total - progress.done) / progress.done + 0.5);
    snprintf(text, room, " %d:%02d left", left / 60, left % 60);
}

static int columns(void)
{
    struct winsize size;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < NARROWEST)
        return NARROWEST;
    return size.ws_col;
}

static void show(const char *text, uint64_t now)
{
    char bar[BAR + 1], left[32], line[256];
    double share = progress.total > 0 ? progress.done / progress.total : 0;
    int filled = (int)(share * BAR);
    filled = filled > BAR ? BAR : filled;
    for (int i = 0; i < BAR; i++)
        bar[i] = i < filled ? '#' : '.';
    bar[BAR] = '\0';
    left_text(now, left, sizeof left);
    snprintf(line, sizeof line, "[%s] %3d%%%s  %s", bar, (int)(share * 100), left, text);
    fprintf(stderr, "\r\033[K%.*s", columns() - 1, line);
    fflush(stderr);
}

void cohi_bench_progress_step(const char *text, double weight)
{
    if (!progress.shown)
        return;
    uint64_t now = cohi_now_ns();
    progress.done += progress.current;
    progress.current = weight;
    if (now - progress.last_ns < SHOW_MS * COHI_NS_PER_MS)
        return;
    progress.last_ns = now;
    show(text, now);
}

void cohi_bench_progress_end(void)
{
    if (progress.shown)
        fputs("\r\033[K", stderr);
    progress.shown = 0;
}
