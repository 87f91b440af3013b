/* json.c: JSON as docs/reference/receipts.md wants it, and text that grows up to a limit. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

struct parser {
  struct licet_doc *doc;
  char *at, *end;
  int kind, depth;
};

static const int max_depth[] = {32, 8}; /* of LICET_PLAIN and LICET_SIGNED */

int licet_i_utf8(const char *text, size_t length) {
  const unsigned char *s = (const unsigned char *)text, *end = s + length;
  while (s < end) {
    unsigned char lowest = 0x80, highest = 0xBF;
    size_t more;
    if (*s < 0x80) {
      more = 0;
    } else if (*s >= 0xC2 && *s <= 0xDF) {
      more = 1;
    } else if (*s >= 0xE0 && *s <= 0xEF) {
      more = 2;
      if (*s == 0xE0) lowest = 0xA0;
      if (*s == 0xED) highest = 0x9F; /* surrogates */
    } else if (*s >= 0xF0 && *s <= 0xF4) {
      more = 3;
      if (*s == 0xF0) lowest = 0x90;
      if (*s == 0xF4) highest = 0x8F;
    } else {
      return 0;
    }
    s++;
    if ((size_t)(end - s) < more) return 0;
    for (; more > 0; more--, s++) {
      if (*s < lowest || *s > highest) return 0;
      lowest = 0x80, highest = 0xBF;
    }
  }
  return 1;
}

static void skip_space(struct parser *p) {
  while (p->at < p->end && (*p->at == ' ' || *p->at == '\t' || *p->at == '\n' || *p->at == '\r')) p->at++;
}

static int next_is(struct parser *p, char c) {
  if (p->at == p->end || *p->at != c) return 0;
  p->at++;
  return 1;
}

/* hex4 reads four hexadecimal digits; -1: there are none. */
static long hex4(struct parser *p) {
  long value = 0;
  int i;
  if (p->end - p->at < 4) return -1;
  for (i = 0; i < 4; i++) {
    char c = *p->at++;
    if (c >= '0' && c <= '9') value = value * 16 + (c - '0');
    else if (c >= 'a' && c <= 'f') value = value * 16 + (c - 'a' + 10);
    else if (c >= 'A' && c <= 'F') value = value * 16 + (c - 'A' + 10);
    else return -1;
  }
  return value;
}

/* read_escape reads what follows a backslash, and writes the character. It writes no more bytes than it has read. */
static int read_escape(struct parser *p, char **out) {
  static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
  const char *found;
  char *o = *out;
  long c, low;
  if (p->at == p->end) return LICET_ERR_DOCUMENT;
  if (*p->at != 'u') {
    found = memchr(from, *p->at++, sizeof from - 1);
    if (found == NULL) return LICET_ERR_DOCUMENT;
    *(*out)++ = to[found - from];
    return LICET_OK;
  }
  p->at++;
  c = hex4(p);
  if (c >= 0xD800 && c <= 0xDBFF) {
    if (!next_is(p, '\\') || !next_is(p, 'u')) return LICET_ERR_DOCUMENT;
    low = hex4(p);
    if (low < 0xDC00 || low > 0xDFFF) return LICET_ERR_DOCUMENT;
    c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
  } else if (c < 0 || (c >= 0xDC00 && c <= 0xDFFF)) {
    return LICET_ERR_DOCUMENT;
  }
  if (c < 0x80) {
    *o++ = (char)c;
  } else if (c < 0x800) {
    *o++ = (char)(0xC0 | (c >> 6));
    *o++ = (char)(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    *o++ = (char)(0xE0 | (c >> 12));
    *o++ = (char)(0x80 | ((c >> 6) & 0x3F));
    *o++ = (char)(0x80 | (c & 0x3F));
  } else {
    *o++ = (char)(0xF0 | (c >> 18));
    *o++ = (char)(0x80 | ((c >> 12) & 0x3F));
    *o++ = (char)(0x80 | ((c >> 6) & 0x3F));
    *o++ = (char)(0x80 | (c & 0x3F));
  }
  *out = o;
  return LICET_OK;
}

/* read_string reads a string whose opening quote has been read, and decodes it in its place. */
static int read_string(struct parser *p, const char **text, size_t *length) {
  char *out = p->at;
  *text = out;
  while (p->at < p->end) {
    char c = *p->at++;
    if (c == '"') {
      *length = (size_t)(out - *text);
      *out = 0; /* at the closing quote or before */
      return LICET_OK;
    }
    if ((unsigned char)c < 0x20) return LICET_ERR_DOCUMENT;
    if (c != '\\') {
      *out++ = c;
    } else if (read_escape(p, &out) != LICET_OK) {
      return LICET_ERR_DOCUMENT;
    }
  }
  return LICET_ERR_DOCUMENT;
}

static int read_digits(struct parser *p) {
  char *start = p->at;
  while (p->at < p->end && *p->at >= '0' && *p->at <= '9') p->at++;
  return p->at > start;
}

static int read_number(struct parser *p, struct licet_json *value) {
  value->text = p->at;
  next_is(p, '-');
  if (!next_is(p, '0') && !read_digits(p)) return LICET_ERR_DOCUMENT;
  if (next_is(p, '.') && !read_digits(p)) return LICET_ERR_DOCUMENT;
  if (next_is(p, 'e') || next_is(p, 'E')) {
    if (!next_is(p, '+')) next_is(p, '-');
    if (!read_digits(p)) return LICET_ERR_DOCUMENT;
  }
  value->type = LICET_NUMBER;
  value->length = (size_t)(p->at - value->text);
  return LICET_OK;
}

static int read_word(struct parser *p, const char *word) {
  size_t length = strlen(word);
  if ((size_t)(p->end - p->at) < length || memcmp(p->at, word, length) != 0) return 0;
  p->at += length;
  return 1;
}

static int by_name(const void *a, const void *b) {
  const struct licet_json *x = *(const struct licet_json *const *)a, *y = *(const struct licet_json *const *)b;
  int order = memcmp(x->name, y->name, x->name_length < y->name_length ? x->name_length : y->name_length);
  if (order != 0) return order;
  return (x->name_length > y->name_length) - (x->name_length < y->name_length);
}

/* unique_names refuses an object with a member twice. */
static int unique_names(struct licet_doc *doc, uint32_t object, size_t members) {
  const struct licet_json **sorted;
  uint32_t i;
  size_t n = 0;
  int status = LICET_OK;
  if (members < 2) return LICET_OK;
  sorted = malloc(members * sizeof *sorted);
  if (sorted == NULL) return LICET_ERR_MEMORY;
  for (i = doc->values[object].child; i != 0; i = doc->values[i].next) sorted[n++] = &doc->values[i];
  qsort(sorted, n, sizeof *sorted, by_name);
  for (n = 1; n < members; n++) {
    if (by_name(&sorted[n - 1], &sorted[n]) == 0) status = LICET_ERR_DOCUMENT;
  }
  free(sorted);
  return status;
}

static int read_value(struct parser *p, uint32_t *index);

static int name_is_allowed(const char *name, size_t length) {
  size_t i;
  for (i = 0; i < length; i++) {
    char c = name[i];
    if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-')) return 0;
  }
  return 1;
}

/* read_values reads an object or an array whose opening bracket has been read. */
static int read_values(struct parser *p, uint32_t parent, int is_object) {
  char closing = is_object ? '}' : ']';
  uint32_t last = 0, child;
  size_t members = 0, length = 0;
  const char *name = NULL;
  int status;
  skip_space(p);
  if (next_is(p, closing)) return LICET_OK;
  for (;;) {
    if (is_object) {
      skip_space(p);
      if (!next_is(p, '"') || read_string(p, &name, &length) != LICET_OK) return LICET_ERR_DOCUMENT;
      if (p->kind == LICET_SIGNED && !name_is_allowed(name, length)) return LICET_ERR_DOCUMENT;
      skip_space(p);
      if (!next_is(p, ':')) return LICET_ERR_DOCUMENT;
    }
    p->depth++;
    status = read_value(p, &child);
    p->depth--;
    if (status != LICET_OK) return status;
    p->doc->values[child].name = name;
    p->doc->values[child].name_length = length;
    if (last == 0) p->doc->values[parent].child = child;
    else p->doc->values[last].next = child;
    last = child;
    members++;
    skip_space(p);
    if (next_is(p, closing)) return is_object ? unique_names(p->doc, parent, members) : LICET_OK;
    if (!next_is(p, ',')) return LICET_ERR_DOCUMENT;
  }
}

/* read_value reads a value. Other values may move, so it names the value by its index. */
static int read_value(struct parser *p, uint32_t *index) {
  struct licet_doc *doc = p->doc;
  struct licet_json value, *grown;
  uint32_t capacity;
  int status = LICET_OK;
  memset(&value, 0, sizeof value);
  skip_space(p);
  if (p->depth > max_depth[p->kind] || doc->count == LICET_MAX_VALUES) return LICET_ERR_DOCUMENT;
  if (next_is(p, '{')) value.type = LICET_OBJECT;
  else if (p->depth == 0) return LICET_ERR_DOCUMENT;
  else if (next_is(p, '[')) value.type = LICET_ARRAY;
  else if (next_is(p, '"')) value.type = LICET_STRING;
  else if (read_word(p, "null")) value.type = LICET_NULL;
  else if (read_word(p, "false")) value.type = LICET_FALSE;
  else if (read_word(p, "true")) value.type = LICET_TRUE;
  else status = read_number(p, &value);
  if (value.type == LICET_STRING) status = read_string(p, &value.text, &value.length);
  if (status != LICET_OK) return status;
  if (doc->count == doc->capacity) {
    capacity = doc->capacity == 0 ? 32 : doc->capacity * 2;
    grown = realloc(doc->values, capacity * sizeof *grown);
    if (grown == NULL) return LICET_ERR_MEMORY;
    doc->values = grown;
    doc->capacity = capacity;
  }
  *index = doc->count++;
  doc->values[*index] = value;
  if (value.type == LICET_OBJECT || value.type == LICET_ARRAY) {
    return read_values(p, *index, value.type == LICET_OBJECT);
  }
  return LICET_OK;
}

int licet_i_parse(struct licet_doc *doc, const char *text, size_t length, int kind) {
  struct parser p;
  uint32_t index;
  int status = LICET_ERR_DOCUMENT;
  memset(doc, 0, sizeof *doc);
  if (length > LICET_MAX_STATE || !licet_i_utf8(text, length)) return LICET_ERR_DOCUMENT;
  doc->buffer = malloc(length + 1);
  if (doc->buffer == NULL) return LICET_ERR_MEMORY;
  if (length > 0) memcpy(doc->buffer, text, length);
  doc->buffer[length] = 0;
  p.doc = doc, p.at = doc->buffer, p.end = doc->buffer + length, p.kind = kind, p.depth = 0;
  status = read_value(&p, &index);
  skip_space(&p);
  if (status == LICET_OK && p.at != p.end) status = LICET_ERR_DOCUMENT;
  if (status != LICET_OK) licet_i_doc_free(doc);
  return status;
}

void licet_i_doc_free(struct licet_doc *doc) {
  free(doc->buffer);
  free(doc->values);
  memset(doc, 0, sizeof *doc);
}

const struct licet_json *licet_i_get(const struct licet_doc *doc, const struct licet_json *object, const char *name) {
  size_t length = strlen(name);
  uint32_t i;
  if (object == NULL || object->type != LICET_OBJECT) return NULL;
  for (i = object->child; i != 0; i = doc->values[i].next) {
    const struct licet_json *v = &doc->values[i];
    if (v->name_length == length && memcmp(v->name, name, length) == 0) return v;
  }
  return NULL;
}

const struct licet_json *licet_i_member(const struct licet_doc *doc, const char *name, int type) {
  const struct licet_json *v = doc->values == NULL ? NULL : licet_i_get(doc, doc->values, name);
  return v != NULL && v->type == type ? v : NULL;
}

int licet_i_is(const struct licet_json *value, const char *text) {
  return value != NULL && value->type == LICET_STRING && value->length == strlen(text) &&
         memcmp(value->text, text, value->length) == 0;
}

/* licet_i_integer reads a number without fraction and exponent, of 64 bits. */
int licet_i_integer(const struct licet_json *value, int64_t *number) {
  size_t i = 0;
  int negative;
  int64_t n = 0;
  if (value == NULL || value->type != LICET_NUMBER) return 0;
  negative = value->text[0] == '-';
  for (i = (size_t)negative; i < value->length; i++) {
    int digit = value->text[i] - '0';
    if (digit < 0 || digit > 9) return 0;
    /* Toward the negative side, which has one number more. */
    if (n < (INT64_MIN + digit) / 10) return 0;
    n = n * 10 - digit;
  }
  if (!negative && n == INT64_MIN) return 0;
  *number = negative ? n : -n;
  return 1;
}

int licet_buffer_append(licet_buffer *b, const void *data, size_t length) {
  size_t capacity;
  char *grown;
  if (b == NULL || (data == NULL && length > 0)) return LICET_ERR_ARGUMENT;
  if (b->failed) return LICET_ERR_MEMORY;
  if (length > b->limit - b->length) {
    b->failed = LICET_TOO_LONG;
    return LICET_ERR_MEMORY;
  }
  if (b->length + length + 1 > b->capacity) {
    capacity = b->capacity * 2 > b->length + length + 1 ? b->capacity * 2 : b->length + length + 256;
    grown = realloc(b->data, capacity);
    if (grown == NULL) {
      b->failed = LICET_NO_MEMORY;
      return LICET_ERR_MEMORY;
    }
    b->data = grown;
    b->capacity = capacity;
  }
  if (length > 0) memcpy(b->data + b->length, data, length);
  b->length += length;
  b->data[b->length] = 0;
  return LICET_OK;
}

void licet_i_buffer_free(licet_buffer *b) {
  free(b->data);
  memset(b, 0, sizeof *b);
}

void licet_i_put(licet_buffer *b, const char *text) { (void)licet_buffer_append(b, text, strlen(text)); }

void licet_i_put_string(licet_buffer *b, const char *text) {
  static const char hex[] = "0123456789abcdef";
  const char *from = text;
  licet_i_put(b, "\"");
  for (; *text != 0; text++) {
    unsigned char c = (unsigned char)*text;
    char escaped[7] = {'\\', 'u', '0', '0', 0, 0, 0};
    if (c >= 0x20 && c != '"' && c != '\\') continue;
    escaped[4] = hex[c >> 4], escaped[5] = hex[c & 15];
    (void)licet_buffer_append(b, from, (size_t)(text - from));
    licet_i_put(b, escaped);
    from = text + 1;
  }
  (void)licet_buffer_append(b, from, (size_t)(text - from));
  licet_i_put(b, "\"");
}

/* licet_i_put_member begins the object or goes on with it, by the last character. */
void licet_i_put_member(licet_buffer *b, const char *name, const char *text) {
  if (b->length > 0 && b->data[b->length - 1] != '{') licet_i_put(b, ",");
  licet_i_put_string(b, name);
  licet_i_put(b, ":");
  if (text != NULL) licet_i_put_string(b, text);
}

void licet_i_put_integer(licet_buffer *b, int64_t value) {
  char digits[24], *at = digits + sizeof digits - 1;
  uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
  *at = 0;
  do *--at = (char)('0' + rest % 10);
  while ((rest /= 10) > 0);
  if (value < 0) *--at = '-';
  licet_i_put(b, at);
}

void licet_i_put_number(licet_buffer *b, const char *name, int64_t value) {
  licet_i_put_member(b, name, NULL);
  licet_i_put_integer(b, value);
}
