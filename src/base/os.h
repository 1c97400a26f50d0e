/*
 * Room: base.
 *
 * What every other room needs and what needs none of them: the operating system, the clock,
 * knobs, the log, error messages, element types, opcodes.
 * Uses libc and pthreads alone.
 * Hides system calls and their errno values, and what differs between kernels: nothing above
 * makes a system call that has a function here.
 */
/*
 * os.h - the operating system, behind one narrow seam.
 *
 * Nothing above base/ makes a system call that has a function here. Calls that can fail return 0 or
 * an errno value, and leave errno alone; they never log and never set the last error, since only
 * the caller knows what the failure means. Every descriptor is close-on-exec.
 */
#ifndef COHI_BASE_OS_H
#define COHI_BASE_OS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* ---- for all, and for engines in modules (os_basic.c) ---- */

/* Whether an errno says that the kernel, or a sandbox, does not allow the call at all. */
bool cohi_os_refused(int error);

/* "No such file or directory", untranslated; "unknown error" or the like for a number that is none. */
const char *cohi_os_error_text(int error);

void cohi_os_close(int fd);

/* Moves a descriptor out of 0-2, which the program may believe to be its standard streams. */
int cohi_os_fd_above_stdio(int *fd);

/* A second descriptor of the same file. */
int cohi_os_fd_copy(int fd, int *copy);

/* The beginning of a file, ended by a zero; how many bytes that is, or -1. */
ssize_t cohi_os_read_start(const char *path, char *text, size_t room);

/* Identifies this boot of this host; equal exactly for processes that could share memory. */
uint64_t cohi_os_host_id(void);

/* Identifies the kernel by which this process is scheduled, this boot of it; 0 where it does not tell. */
uint64_t cohi_os_kernel_id(void);

/* Identifies the network that this process sees, of this boot of the host: where it is equal, so is
 * the loopback address. 0 where the kernel does not tell. */
uint64_t cohi_os_network_id(void);

int cohi_os_random(void *bytes, size_t count);

/* Takes a connection if one is waiting; EAGAIN when none is. It never blocks. */
int cohi_os_accept(int listener, int *fd);

/* Starts a thread with all signals blocked. `name` shows in ps and debuggers. */
int cohi_os_thread_start(const char *name, void *(*entry)(void *), void *arg, void *pthread_out);

/* ---- memory (os_memory.c) ---- */

size_t cohi_os_page_bytes(void);

/* A memfd of `bytes`, sealed against growing and shrinking; sparse until committed. EFBIG when
 * RLIMIT_FSIZE is less. */
int cohi_os_shared_create(const char *name, size_t bytes, int *fd);

/* Reads a memfd's size. Used on descriptors that came from a peer, before mapping them. */
int cohi_os_file_bytes(int fd, size_t *bytes);

/* Tells files apart; 0 where `fd` is not open. */
uint64_t cohi_os_file_id(int fd);

/* Maps `bytes` of `fd` for reading and writing, at an address aligned to `alignment`. */
int cohi_os_map_shared(int fd, size_t bytes, size_t alignment, void **base);

/* Reserves `bytes` of private memory, aligned; to be committed before it is touched. */
int cohi_os_map_private(size_t bytes, size_t alignment, void **base);

void cohi_os_unmap(void *base, size_t bytes);

/*
 * Makes the pages at `base` a view of `fd` from `offset` on, with what was in them; pages that were
 * never touched take no memory. The kernel copies: pages of a program may hold ranges that a
 * sanitizer forbids it to read. On failure they are as they were.
 */
int cohi_os_window_open(int fd, uint64_t offset, void *base, size_t bytes);

/* A private copy of `bytes` of `fd` from `offset` on, holes left out; and that copy moved to where
 * a view was. */
int cohi_os_window_copy(int fd, uint64_t offset, size_t bytes, void **copy);
int cohi_os_window_replace(void *copy, void *base, size_t bytes);

/* A view whose writes are private from now on. Nothing is copied and no write of another thread is
 * lost. Pages that this process does not write still show what others write to the file. */
int cohi_os_window_detach(int fd, uint64_t offset, void *base, size_t bytes);

/* Backs [from, to) of a shared file with memory, or fails with ENOMEM/ENOSPC and no effect. */
int cohi_os_commit_shared(int fd, size_t from, size_t to);

/* Backs [from, to) of the private memory at `base`; fails as for a shared file. */
int cohi_os_commit_private(void *base, size_t from, size_t to);

/* Gives memory back; what was there reads as zero, and can still be written to: a peer that
 * does not know yet may do so. Of a shared file it may be refused; then all is as before. */
int cohi_os_decommit_shared(int fd, size_t from, size_t to);
void cohi_os_decommit_private(void *base, size_t from, size_t to);

/* Asks for huge pages; a kernel that has none there is not an error. */
void cohi_os_advise_huge(void *base, size_t bytes);

/*
 * What could be committed now without swapping or the OOM killer. Several limits hold at once: the
 * host's memory, and that of each memory cgroup around this process. Each keeps a share of its own
 * size back for everybody else under it; the one that leaves least binds.
 */
typedef struct cohi_os_memory {
    uint64_t limit;     /* bytes: the host's memory, or the cgroup's limit */
    uint64_t left;      /* of them, not in use */
    uint64_t reserve;   /* of `left`, kept back */
    uint64_t available; /* the rest */
    bool grouped;       /* a memory cgroup binds, not the host */
} cohi_os_memory;

cohi_os_memory cohi_os_memory_look(void);

/* What cohi_os_memory_look finds when these are the numbers: a cgroup's limit and use, the host's
 * total and what that has left. */
cohi_os_memory cohi_os_memory_judge(uint64_t limit, uint64_t used, uint64_t total, uint64_t left);

/* "N are available (this host has ...)", to end an error message; up to
 * COHI_OS_MEMORY_TEXT bytes. */
enum { COHI_OS_MEMORY_TEXT = 240 };
void cohi_os_memory_describe(const cohi_os_memory *memory, char *text, size_t room);

uint64_t cohi_os_memory_total(void);

/* Address space this process may still map: RLIMIT_AS less what is mapped; UINT64_MAX: unlimited.
 */
uint64_t cohi_os_address_space_left(void);

/* ---- futex (os_futex.c) ---- */

/* Sleeps while *word == expected, for at most `timeout_ns`. May return early. */
void cohi_os_futex_wait(atomic_uint *word, unsigned expected, uint64_t timeout_ns);

/* Wakes all that sleep on `word`, in every process that maps it. */
void cohi_os_futex_wake(atomic_uint *word);

/* 0, or the errno with which a sandbox refuses the call. The C library's locks then abort the
 * process, a pthread_once already, so that this is to be asked first. */
int cohi_os_futex_refused(void);

/* ---- processes (os_process.c) ---- */

/* A descriptor that becomes readable when the process ends. */
int cohi_os_pidfd_open(pid_t pid, int *fd);

/* Whether the process behind `fd` has ended. */
int cohi_os_pidfd_ended(int fd);

/* poll(2), or ppoll(2) where a sandbox refuses that. */
struct pollfd;
int cohi_os_poll(struct pollfd *set, unsigned long count, int timeout_ms);

/* The one-letter state of /proc/PID/stat ('R', 'S', 'T', ...), or 0 when there is no such process.
 */
char cohi_os_process_state(pid_t pid);

/* The one-letter state in a "stat" file of /proc, a process's or a thread's; 0 when there is none.
 */
char cohi_os_state_in(const char *path);

/* Whether a thread of the process, or any thread of it, has a core or waits for one, or for the kernel. The calling
 * thread does not count. False where that cannot be known. */
bool cohi_os_thread_wants_core(pid_t pid, int thread);
bool cohi_os_process_wants_core(pid_t pid);

/* Whether it has been made to end as a whole, by a signal or by itself, and may still have threads that have not come to
 * that: they have to be scheduled for it. False where that cannot be known. */
bool cohi_os_process_ends(pid_t pid);

/* Whether there is no such process any more, or nobody has reaped it yet. A later process with the
 * same number is taken for it: cohi_os_pidfd_ended is better where it can be had. */
bool cohi_os_process_ended(pid_t pid);

/* Copies all bytes between this process's memory and another's, which is at `there` in it. Part
 * of them may have been copied when it fails. */
int cohi_os_process_read(pid_t pid, void *here, uint64_t there, size_t bytes);
int cohi_os_process_write(pid_t pid, const void *here, uint64_t there, size_t bytes);

/*
 * Whether the kernel copies from the process that is meant. It may be forbidden, and the pid may be
 * another process here (a container's): so something that only the one that is meant has is read.
 * Up to COHI_OS_TOKEN_MAX bytes.
 */
enum { COHI_OS_TOKEN_MAX = 64 };
bool cohi_os_process_holds(pid_t pid, uint64_t there, const void *expected, size_t bytes);

enum { COHI_OS_CORE_BYTES = 128 };

/* The cores that this process may run on, a bit each. */
void cohi_os_cores(unsigned char mask[COHI_OS_CORE_BYTES]);

/* How many bits of a mask are set; how many cores this process may run on. */
int cohi_os_cores_in(const unsigned char mask[COHI_OS_CORE_BYTES]);
int cohi_os_core_count(void);

/* The core that the calling thread is on, or -1 where the kernel does not tell. */
int cohi_os_core_now(void);

/* What the host calls itself. */
void cohi_os_host_name(char *text, size_t room);

/* ---- threads (os_threads.c) ---- */

/* The kernel's id of the calling thread. */
int cohi_os_thread_id(void);

/* Marks the calling thread as one of the library's own that does no work of the program; false
 * takes the mark back. */
void cohi_os_thread_serves(bool serves);

/* Marks another thread, by its kernel id: called by the giver of work, before that thread wakes. */
void cohi_os_thread_serves_as(int thread, bool serves);

/* Whether the first thread of the process has ended, and all others but ours. */
bool cohi_os_program_ended(void);

/* What threads of this process do. */
typedef struct cohi_os_threads {
    int others;    /* that have not ended; when one is busy, not all may be counted */
    bool busy;     /* one of them is not in a sleep that only another thread can end */
    uint64_t runs; /* differs when one of them has run meanwhile */
} cohi_os_threads;

/* Looks at all but the caller, those that serve, and those that `is_known` knows. False where the
 * kernel does not tell. */
bool cohi_os_threads_look(bool (*is_known)(int id, void *arg), void *arg, cohi_os_threads *seen);

/* Adds one thread to what was seen. */
void cohi_os_thread_look(int id, cohi_os_threads *seen);
/* How many threads this process has; 0 where the kernel does not tell. */
int cohi_os_thread_count(void);

/* "Segmentation fault", or "unknown" for a signal without a description. */
const char *cohi_os_signal_text(int signal);

/* ---- local sockets (os_socket.c) ---- */

enum { COHI_OS_FDS_MAX = 4 }; /* descriptors one message may carry */

/* Listens on, connects to, an abstract AF_UNIX name (no file). */
int cohi_os_local_listen(const char *name, int *fd);
int cohi_os_local_connect(const char *name, int *fd);

/* The user and process at the other end, from the kernel. */
int cohi_os_peer_credentials(int fd, uid_t *uid, pid_t *pid);

/*
 * Moves exactly `bytes`, with up to COHI_OS_FDS_MAX descriptors attached to the first byte, before
 * `deadline_ns` (of cohi_now_ns). ETIMEDOUT; ECONNRESET when the peer closed. On receive, *fd_count
 * is how many came; those past `fd_room` are closed.
 */
int cohi_os_send(int fd, const void *data, size_t bytes, const int *fds, int fd_count,
                 uint64_t deadline_ns);
int cohi_os_receive(int fd, void *data, size_t bytes, int *fds, int fd_room, int *fd_count,
                    uint64_t deadline_ns);

/* Takes what has come, at most `bytes`, without waiting: EAGAIN when nothing has. Descriptors that
 * came with it are dropped. */
int cohi_os_receive_now(int fd, void *data, size_t bytes, size_t *got);

/* ---- the network (os_net.c) ---- */

/* An address of IPv4 or IPv6, in the order of the network. */
typedef struct cohi_os_address {
    unsigned char family; /* 4 or 6; 0: none */
    unsigned char bytes[16];
} cohi_os_address;

enum { COHI_OS_ADDRESS_TEXT = 48 };
void cohi_os_address_text(const cohi_os_address *address, char text[COHI_OS_ADDRESS_TEXT]);

/* Up to `room` addresses of this host that others may reach, those of IPv4 first. `choice` is the
 * name of an interface or a subnet; "" takes all but the loopback's. Returns how many; -1 when
 * `choice` is neither. */
int cohi_os_addresses(const char *choice, cohi_os_address *addresses, int room);

/*
 * The addresses of a name or a numeric address, up to `room`, those of IPv4 first; what they are asked of
 * may take its time, or never answer. 0 and *count; or a code of getaddrinfo(3), for
 * cohi_os_resolve_text.
 */
int cohi_os_resolve(const char *name, cohi_os_address *addresses, int room, int *count);
const char *cohi_os_resolve_text(int code);

/* Listens on the address; port 0 is any that is free. *port is the one. */
int cohi_os_net_listen(const cohi_os_address *address, uint16_t *port, int *fd);

/* Connects before `deadline_ns`. What is sent goes out at once. */
int cohi_os_net_connect(const cohi_os_address *address, uint16_t port, uint64_t deadline_ns,
                        int *fd);

/* For a connection that was accepted: what is sent goes out at once. */
void cohi_os_net_hurry(int fd);

#endif
