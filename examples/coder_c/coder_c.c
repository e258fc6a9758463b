/* coder_c - a coder of one rule in plain C11: carries out "launch bounds", which tells the compiler how many threads a
 * block has at most, and so how many registers each may use. It needs the headers in core/abi and nothing else.
 */
#include <kgrpo/coder.h>
#include <kgrpo/host.h>
#include <kgrpo/options.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The instance: what create makes and the other functions get back. The type is ours; the host has pointers only. */
struct kgrpo_coder {
  const kgrpo_host* host;
  char bounds[64]; /* what is put before a kernel's name */
};

/* What `options:` of a pipeline may hold. The host checks the pipeline against this JSON Schema and fills the defaults
 * in before it calls create, which therefore finds every option, with the right type. */
static kgrpo_str options_schema(void) {
  return KGRPO_LITERAL(
      "{\"title\": \"coder_c\", \"type\": \"object\", \"additionalProperties\": false, \"properties\": {"
      "\"threads\": {\"title\": \"threads\", \"type\": \"integer\", \"minimum\": 32, \"maximum\": 1024, \"default\": "
      "1024,"
      "  \"description\": \"The most threads that a block has. Blocks with more cannot be launched.\"}}}");
}

static kgrpo_error* out_of_memory(const kgrpo_host* host) {
  const kgrpo_host_interface* api = host->get_interface(host->context, KGRPO_LITERAL(KGRPO_HOST_INTERFACE));
  return api->make_error(host->context, KGRPO_ERROR_INTERNAL, KGRPO_LITERAL("out of memory"));
}

/* Makes an instance, or returns an error, which the caller releases. *out is written on success only. */
static kgrpo_error* create(const kgrpo_host* host, kgrpo_str options, kgrpo_coder** out) {
  int64_t threads = 0;
  const kgrpo_options_interface* read = host->get_interface(host->context, KGRPO_LITERAL(KGRPO_OPTIONS_INTERFACE));
  kgrpo_error* error = read->integer(host->context, options, KGRPO_LITERAL("threads"), &threads);
  if (error != NULL) return error;
  kgrpo_coder* coder = malloc(sizeof *coder);
  if (coder == NULL) return out_of_memory(host);
  coder->host = host;
  snprintf(coder->bounds, sizeof coder->bounds, "__launch_bounds__(%d) ", (int)threads);
  *out = coder;
  return NULL;
}

/* Whoever allocates frees. free takes NULL, as destroy must. */
static void destroy(kgrpo_coder* self) {
  free(self);
}

/* Returns where `word` begins in `text` from `at` on; text.size if it does not. Texts of the ABI do not end in a
 * zero. */
static size_t find(kgrpo_str text, size_t at, const char* word) {
  const size_t size = strlen(word);
  for (; at + size <= text.size; ++at) {
    if (memcmp(text.data + at, word, size) == 0) return at;
  }
  return text.size;
}

/* `code` with the bounds behind each "__global__ void "; NULL where memory is out. The caller frees it. */
static char* with_bounds(const kgrpo_coder* self, kgrpo_str code, size_t* size) {
  const char* const kernel = "__global__ void ";
  const size_t added = strlen(self->bounds);
  size_t kernels = 0, from = 0;
  for (size_t at = find(code, 0, kernel); at < code.size; at = find(code, at + 1, kernel)) ++kernels;
  char* made = malloc(code.size + kernels * added + 1);
  if (made == NULL) return NULL;
  *size = 0;
  while (from < code.size) {
    const size_t at = find(code, from, kernel);
    const size_t end = at < code.size ? at + strlen(kernel) : code.size;
    memcpy(made + *size, code.data + from, end - from);
    *size += end - from;
    from = end;
    if (at == code.size) break;
    memcpy(made + *size, self->bounds, added);
    *size += added;
  }
  return made;
}

/* An accepted request is answered exactly once. A coder that waits for a service answers later, from a thread of its
 * own; one that is as quick as this answers at once. Called from several threads at once. */
static kgrpo_error* implement(kgrpo_coder* self, const kgrpo_coder_request* request, kgrpo_coder_done done) {
  kgrpo_coder_answer answer = {0};
  char* source = NULL;
  answer.struct_size = sizeof answer;
  answer.attempts = 1;
  if (find(request->suggestion, 0, "launch bounds") == request->suggestion.size) {
    answer.outcome = KGRPO_CODER_UNCLEAR;
    answer.message = KGRPO_LITERAL("this coder knows one thing: launch bounds");
  } else if (find(request->code_b, 0, "__launch_bounds__") < request->code_b.size) {
    answer.outcome = KGRPO_CODER_NOT_APPLICABLE;
    answer.message = KGRPO_LITERAL("the kernel has launch bounds");
  } else if (find(request->code_b, 0, "__global__ void ") == request->code_b.size) {
    answer.outcome = KGRPO_CODER_NOT_APPLICABLE;
    answer.message = KGRPO_LITERAL("there is no __global__ void");
  } else {
    source = with_bounds(self, request->code_b, &answer.source.size);
    if (source == NULL) return out_of_memory(self->host); /* an error: then done is not called */
    answer.outcome = KGRPO_CODER_OK;
    answer.source.data = source;
    answer.summary = KGRPO_LITERAL("launch bounds");
  }
  done.done(done.context, &answer, NULL);
  free(source); /* the host has copied what it keeps */
  return NULL;
}

/* Nothing is ever in flight. */
static void cancel(kgrpo_coder* self) {
  (void)self;
}

/* For baselines that play a coder's own suggestions, and for warm starts. Optional: its place may be NULL. */
static kgrpo_error* suggestions(const kgrpo_coder* self, kgrpo_text_sink sink) {
  (void)self;
  sink.put(sink.context, KGRPO_LITERAL("launch bounds"));
  return NULL;
}

/* The interface: its functions in the order of the header. struct_size says which of them these headers knew. */
static const kgrpo_coder_interface coder_interface = {
    sizeof(kgrpo_coder_interface), options_schema, create, destroy, implement, cancel, suggestions, NULL, NULL, NULL, NULL};

/* The host asks for interfaces by id; NULL is "not offered". */
static const void* get_interface(kgrpo_str id) {
  const kgrpo_str ours = KGRPO_LITERAL(KGRPO_CODER_INTERFACE);
  return id.size == ours.size && memcmp(id.data, ours.data, id.size) == 0 ? &coder_interface : NULL;
}

/* The one symbol that is exported. A pipeline names the plugin, and the file, as here: coder_c. */
const kgrpo_plugin* kgrpo_plugin_entry(void) {
#define TEXT(literal) \
  { literal, sizeof(literal) - 1 }
  static const kgrpo_plugin plugin = {sizeof(kgrpo_plugin), KGRPO_ABI_MAJOR,
                                      KGRPO_ABI_MINOR,      TEXT("coder_c"),
                                      TEXT("0.1.0"),        TEXT("adds launch bounds to kernels, in plain C"),
                                      get_interface};
  return &plugin;
}
