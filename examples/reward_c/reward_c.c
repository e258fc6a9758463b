/* reward_c - a whole plugin in plain C11: a reward that pays for a correct kernel and for its speed. It needs the
 * headers in core/abi and nothing else. Build it with one command:
 *
 *   gcc -std=c11 -shared -fPIC -fvisibility=hidden -O2 -Wall -Wextra -I$KGRPO/core/abi -Wl,-z,defs \
 *       -o reward_c.so reward_c.c
 *
 * A C compiler is all it takes; CMakeLists.txt does the same. Then: kgrpo-host plugins validate ./reward_c.so
 */
#include <kgrpo/host.h>
#include <kgrpo/options.h>
#include <kgrpo/reward.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The instance: what create makes and the other functions get back. The type is ours; the host has pointers only. */
struct kgrpo_reward {
  double correct; /* paid for a correct kernel */
  double speedup; /* factor of its speedup over the reference */
  double failure; /* paid otherwise */
};

/* What `options:` of a pipeline may hold. The host checks the pipeline against this JSON Schema and fills the defaults
 * in before it calls create, which therefore finds every option, with the right type. */
static kgrpo_str options_schema(void) {
  return KGRPO_LITERAL(
      "{\"title\": \"reward_c\", \"type\": \"object\", \"additionalProperties\": false, \"properties\": {"
      "\"correct\": {\"title\": \"correct\", \"type\": \"number\", \"default\": 0.3,"
      "  \"description\": \"Paid for a correct kernel before its speed.\"},"
      "\"speedup\": {\"title\": \"speedup\", \"type\": \"number\", \"minimum\": 0, \"default\": 1.0,"
      "  \"description\": \"Factor of the speedup of a correct kernel over the reference.\"},"
      "\"failure\": {\"title\": \"failure\", \"type\": \"number\", \"maximum\": 0, \"default\": -1.0,"
      "  \"description\": \"Paid for a kernel that is not correct, or for none.\"}}}");
}

/* Makes an instance, or returns an error, which the caller releases: errors of number are passed on as they are. *out
 * is written on success only. The host's functions are found by id: errors and log lines; options without a JSON
 * library. */
static kgrpo_error* create(const kgrpo_host* host, kgrpo_str options, kgrpo_reward** out) {
  const kgrpo_host_interface* api = host->get_interface(host->context, KGRPO_LITERAL(KGRPO_HOST_INTERFACE));
  const kgrpo_options_interface* read = host->get_interface(host->context, KGRPO_LITERAL(KGRPO_OPTIONS_INTERFACE));
  struct kgrpo_reward made;
  kgrpo_error* error;
  if ((error = read->number(host->context, options, KGRPO_LITERAL("correct"), &made.correct))) return error;
  if ((error = read->number(host->context, options, KGRPO_LITERAL("speedup"), &made.speedup))) return error;
  if ((error = read->number(host->context, options, KGRPO_LITERAL("failure"), &made.failure))) return error;
  if (made.failure >= made.correct) /* a schema cannot express this */
    return api->make_error(host->context, KGRPO_ERROR_INVALID,
                           KGRPO_LITERAL("options.failure: must be below options.correct"));
  struct kgrpo_reward* reward = malloc(sizeof *reward);
  if (reward == NULL) return api->make_error(host->context, KGRPO_ERROR_INTERNAL, KGRPO_LITERAL("out of memory"));
  *reward = made;
  *out = reward;
  return NULL;
}

/* Whoever allocates frees. free takes NULL, as destroy must. */
static void destroy(kgrpo_reward* self) {
  free(self);
}

/* A part of the score, for the run's records. The parts sum up to the score. */
static void add_part(kgrpo_metric_sink parts, kgrpo_str name, double value) {
  kgrpo_metric part = {name, value, NAN, NAN}; /* no confidence interval */
  parts.add(parts.context, part);
}

/* Scores one round. Called from several threads at once, so it keeps no state. request->candidate is NULL when the
 * coder wrote no kernel. */
static kgrpo_error* score(const kgrpo_reward* self, const kgrpo_reward_request* request, kgrpo_metric_sink parts,
                          double* out) {
  const kgrpo_evaluation* candidate = request->candidate;
  if (candidate == NULL || !candidate->correct) {
    add_part(parts, KGRPO_LITERAL("failure"), self->failure);
    *out = self->failure;
    return NULL;
  }
  const double speed = self->speedup * candidate->speedup;
  add_part(parts, KGRPO_LITERAL("correct"), self->correct);
  add_part(parts, KGRPO_LITERAL("speed"), speed);
  *out = self->correct + speed;
  return NULL;
}

/* The pay of a round that leaves the current kernel as it is. Optional: its place in the table may be NULL. */
static kgrpo_error* idle(const kgrpo_reward* self, const kgrpo_reward_request* request, double* out) {
  *out = request->current->correct ? self->correct + self->speedup * request->current->speedup : self->failure;
  return NULL;
}

/* The interface: its functions in the order of the header. struct_size says which of them these headers knew. */
static const kgrpo_reward_interface reward_interface = {
    sizeof(kgrpo_reward_interface), options_schema, create, destroy, score, idle, NULL};

/* The host asks for interfaces by id; NULL is "not offered". */
static const void* get_interface(kgrpo_str id) {
  const kgrpo_str ours = KGRPO_LITERAL(KGRPO_REWARD_INTERFACE);
  return id.size == ours.size && memcmp(id.data, ours.data, id.size) == 0 ? &reward_interface : NULL;
}

/* The one symbol that is exported. A pipeline names the plugin, and the file, as here: reward_c. */
const kgrpo_plugin* kgrpo_plugin_entry(void) {
#define TEXT(literal) \
  { literal, sizeof(literal) - 1 }
  static const kgrpo_plugin plugin = {
      sizeof(kgrpo_plugin), KGRPO_ABI_MAJOR, KGRPO_ABI_MINOR,
      TEXT("reward_c"),     TEXT("0.1.0"),   TEXT("pays for correct kernels and their speed, in plain C"),
      get_interface};
  return &plugin;
}
