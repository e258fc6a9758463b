/* observer_c - a whole plugin in plain C11: stops a run once a step's mean reward is below a limit. It needs the
 * headers of kgrpo and nothing else. */
#include <kgrpo/host.h>
#include <kgrpo/observer.h>
#include <kgrpo/options.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The instance: what create makes and the other functions get back. The type is ours; the host has pointers only. */
struct kgrpo_observer {
  const kgrpo_host* host;
  const kgrpo_host_interface* api; /* errors, log lines, stops */
  double limit;
};

static int equal(kgrpo_str a, kgrpo_str b) {
  return a.size == b.size && memcmp(a.data, b.data, a.size) == 0;
}

/* What `options:` of a pipeline may hold. The host checks the pipeline against this JSON Schema and fills the defaults
 * in before it calls create, which therefore finds every option, with the correct type. */
static kgrpo_str options_schema(void) {
  return KGRPO_LITERAL(
      "{\"title\": \"observer_c\", \"type\": \"object\", \"additionalProperties\": false, \"properties\": {"
      "\"limit\": {\"title\": \"limit\", \"type\": \"number\", \"default\": -0.9,"
      "  \"description\": \"A step whose mean reward is below it stops the run.\"}}}");
}

/* Makes an instance, or returns why not. *out is written on success only. */
static kgrpo_error* create(const kgrpo_host* host, kgrpo_str options, kgrpo_observer** out) {
  const kgrpo_host_interface* api = host->get_interface(host->context, KGRPO_LITERAL(KGRPO_HOST_INTERFACE));
  struct kgrpo_observer made = {host, api, 0};
  const kgrpo_options_interface* read = host->get_interface(host->context, KGRPO_LITERAL(KGRPO_OPTIONS_INTERFACE));
  kgrpo_error* error = read->number(host->context, options, KGRPO_LITERAL("limit"), &made.limit);
  if (error != NULL) return error;
  struct kgrpo_observer* observer = malloc(sizeof *observer);
  if (observer == NULL) return api->make_error(host->context, KGRPO_ERROR_INTERNAL, KGRPO_LITERAL("out of memory"));
  *observer = made;
  *out = observer;
  return NULL;
}

/* Whoever allocates frees. free takes NULL, as destroy must. */
static void destroy(kgrpo_observer* self) {
  free(self);
}

/* A step is recorded. An error would end the run; asking for a stop keeps its checkpoint. */
static kgrpo_error* step(kgrpo_observer* self, const kgrpo_step_event* event) {
  for (size_t i = 0; i < event->metric_count; ++i) {
    const kgrpo_metric* metric = &event->metrics[i];
    if (!equal(metric->name, KGRPO_LITERAL("reward")) || metric->value >= self->limit) continue;
    char text[80];
    const int size = snprintf(text, sizeof text, "the mean reward is %.3g, below %.3g", metric->value, self->limit);
    self->api->request_stop(self->host->context, (kgrpo_str){text, (size_t)size});
  }
  return NULL;
}

/* The interface: its functions in the order of the header; NULL for events that this observer does not need. */
static const kgrpo_observer_interface observer_interface = {
    sizeof(kgrpo_observer_interface), options_schema, create, destroy, NULL, NULL, step, NULL, NULL, NULL};

/* The host asks for interfaces by id; NULL is "not offered". */
static const void* get_interface(kgrpo_str id) {
  return equal(id, KGRPO_LITERAL(KGRPO_OBSERVER_INTERFACE)) ? &observer_interface : NULL;
}

/* The one symbol that is exported. A pipeline names the plugin, and the file, as here: observer_c. */
const kgrpo_plugin* kgrpo_plugin_entry(void) {
#define TEXT(literal) \
  { literal, sizeof(literal) - 1 }
  static const kgrpo_plugin plugin = {sizeof(kgrpo_plugin), KGRPO_ABI_MAJOR,
                                      KGRPO_ABI_MINOR,      TEXT("observer_c"),
                                      TEXT("0.1.0"),        TEXT("stops a run whose reward has collapsed, in plain C"),
                                      get_interface};
  return &plugin;
}
