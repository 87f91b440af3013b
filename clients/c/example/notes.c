/* notes.c: a program that activates its license online once, and then runs offline. */
#include <licet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *setting(const char *name) {
  const char *value = getenv(name);
  if (value != NULL) return value;
  fprintf(stderr, "set %s\n", name);
  exit(2);
}

int main(int argc, char **argv) {
  const char *command = argc > 1 ? argv[1] : "check", *edition;
  licet_config config;
  licet *license;
  licet_result *result;
  int64_t seats;
  int status, allowed;
  memset(&config, 0, sizeof config);
  config.size = sizeof config;
  config.url = setting("LICET_URL"); /* your program has these values built in, but the device's id */
  config.root = setting("LICET_ROOT");
  config.account_id = setting("LICET_ACCOUNT");
  config.mode = "test";
  config.product_id = "notes";
  config.device_id = setting("LICET_DEVICE");
  config.state_file = "licet.json";
  config.grace_seconds = 3 * 24 * 3600;
  status = licet_open(&config, &license);
  if (status != LICET_OK) {
    fprintf(stderr, "licet_open: %d\n", status);
    return 2;
  }
  if (strcmp(command, "activate") == 0 && argc > 2) status = licet_activate(license, argv[2], "My laptop", &result);
  else if (strcmp(command, "deactivate") == 0) status = licet_deactivate(license, &result);
  else if (strcmp(command, "validate") == 0) status = licet_validate(license, &result);
  else status = licet_check(license, &result);
  if (status == LICET_OK && licet_result_allowed(result) && licet_result_refresh_at(result) <= time(NULL)) {
    licet_result_free(result); /* a program with windows does this in a thread, with a handle of its own */
    status = licet_refresh(license, &result);
  }
  allowed = licet_result_allowed(result);
  if (strcmp(command, "deactivate") == 0 && status == LICET_OK) {
    allowed = 1;
    puts("deactivated");
  } else if (allowed) {
    edition = licet_entitlement_text(result, "edition");
    printf("licensed: %s edition", edition != NULL ? edition : "standard");
    if (licet_entitlement_int(result, "seats", &seats)) printf(", %d seats", (int)seats);
    printf("%s\n", licet_result_in_grace(result) ? "; please go online soon" : "");
  } else {
    printf("not licensed: %s %s\n", licet_result_reason(result), licet_result_message(result));
  }
  licet_result_free(result);
  licet_close(license);
  return !allowed;
}
