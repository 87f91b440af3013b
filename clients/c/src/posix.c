/* posix.c: the state in a file, pauses, and a monotonic clock. */
#ifndef LICET_WITHOUT_POSIX
#define _POSIX_C_SOURCE 200809L
#endif
#include "internal.h"

#ifdef LICET_WITHOUT_POSIX
int licet_i_use_posix(licet_config *config) {
  return config->load != NULL && config->wait != NULL && config->ticks != NULL;
}

int licet_i_file_load(const char *path, licet_buffer *state) {
  (void)path, (void)state;
  return 1;
}

int licet_i_file_save(const char *path, const char *state, size_t length) {
  (void)path, (void)state, (void)length;
  return 1;
}
#else
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void pause_for(void *user, int milliseconds) {
  struct timespec rest;
  (void)user;
  rest.tv_sec = milliseconds / 1000, rest.tv_nsec = milliseconds % 1000 * 1000000L;
  while (nanosleep(&rest, &rest) != 0 && errno == EINTR) continue;
}

static int64_t read_ticks(void *user) {
  struct timespec t = {0, 0};
  (void)user;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int licet_i_use_posix(licet_config *config) {
  if (config->wait == NULL) config->wait = pause_for;
  if (config->ticks == NULL) config->ticks = read_ticks;
  return 1;
}

/* licet_i_file_load reads a file; a missing one is empty. */
int licet_i_file_load(const char *path, licet_buffer *state) {
  char part[4096];
  size_t n;
  int failed = 0;
  FILE *file = fopen(path, "rb");
  if (file == NULL) return errno != ENOENT;
  while (!failed && (n = fread(part, 1, sizeof part, file)) > 0) failed = licet_buffer_append(state, part, n);
  failed = failed || ferror(file);
  fclose(file);
  return failed;
}

static int write_all(int file, const char *data, size_t length) {
  while (length > 0) {
    ssize_t n = write(file, data, length);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return 1;
    data += n;
    length -= (size_t)n;
  }
  return fsync(file) != 0;
}

/* sync_folder makes a rename in the folder of path outlast a power cut. Some file systems can't: that is no failure. */
static void sync_folder(char *path) {
  char *slash = strrchr(path, '/');
  int folder;
  if (slash != NULL) slash[slash == path] = 0;
  folder = open(slash == NULL ? "." : path, O_RDONLY);
  if (folder < 0) return;
  (void)fsync(folder);
  close(folder);
}

/* licet_i_file_save writes a new file that only its owner reads, and renames it: readers see the old or the new one. */
int licet_i_file_save(const char *path, const char *state, size_t length) {
  static const char suffix[] = ".XXXXXX";
  size_t n = strlen(path);
  char *name = malloc(n + sizeof suffix);
  int file, failed;
  if (name == NULL) return 1;
  memcpy(name, path, n);
  memcpy(name + n, suffix, sizeof suffix);
  file = mkstemp(name);
  if (file < 0) {
    free(name);
    return 1;
  }
  failed = write_all(file, state, length);
  failed = close(file) != 0 || failed;
  failed = failed || rename(name, path) != 0;
  if (failed) (void)unlink(name);
  else sync_folder(name);
  free(name);
  return failed;
}
#endif
