/* trainer_c - REINFORCE with a baseline in plain C11: a completion becomes more likely if its reward is above the mean
 * of its problem, in proportion to the difference. Adam on the CPU. The whole of a plugin: options, the trainer, its
 * state, the bootstrap. It needs the headers of kgrpo and nothing else. */
#include <kgrpo/host.h>
#include <kgrpo/options.h>
#include <kgrpo/trainer.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A trainable parameter: the policy's memory. */
typedef struct floats {
  float* values;
  const float* gradients;
  size_t size;
} floats;

/* The instance: what create makes and the other functions get back. The type is ours; the host has pointers only. */
struct kgrpo_trainer {
  const kgrpo_host* host;
  const kgrpo_host_interface* api; /* errors, metrics, the device lock */
  double learning_rate, temperature;
  const kgrpo_policy_interface* policy_api; /* set by begin, like all members below */
  kgrpo_policy* policy;
  floats* parameters;
  size_t parameter_count, number_count; /* numbers in all parameters together */
  double* moments;                      /* first and second moment of each number */
  uint64_t steps;
};

static kgrpo_error* fail(const kgrpo_trainer* self, uint32_t code, const char* message) {
  return self->api->make_error(self->host->context, code, (kgrpo_str){message, strlen(message)});
}

/* What `options:` of a pipeline may hold. The host checks the pipeline against this JSON Schema and fills the defaults
 * in before it calls create, which therefore finds every option, with the right type. */
static kgrpo_str options_schema(void) {
  return KGRPO_LITERAL(
      "{\"title\": \"trainer_c\", \"type\": \"object\", \"additionalProperties\": false, \"properties\": {"
      "\"learning_rate\": {\"title\": \"learning rate\", \"type\": \"number\", \"exclusiveMinimum\": 0,"
      "  \"default\": 1e-3, \"description\": \"Of Adam. Large policies want 1e-6 to 1e-5, tiny ones 1e-3 and "
      "more.\"}}}");
}

/* Makes an instance, or returns an error, which the caller releases. *out is written on success only. */
static kgrpo_error* create(const kgrpo_host* host, kgrpo_str options, kgrpo_trainer** out) {
  kgrpo_trainer made = {0};
  made.host = host;
  made.api = host->get_interface(host->context, KGRPO_LITERAL(KGRPO_HOST_INTERFACE));
  const kgrpo_options_interface* read = host->get_interface(host->context, KGRPO_LITERAL(KGRPO_OPTIONS_INTERFACE));
  kgrpo_error* error = read->number(host->context, options, KGRPO_LITERAL("learning_rate"), &made.learning_rate);
  if (error != NULL) return error;
  kgrpo_metric_declaration norm = {0}; /* so that the figure is shown under a heading */
  norm.struct_size = sizeof norm;
  norm.name = KGRPO_LITERAL("grad_norm");
  norm.label = KGRPO_LITERAL("gradient norm");
  norm.group = KGRPO_LITERAL("Training");
  error = made.api->declare_metric(host->context, &norm);
  if (error != NULL) return error;
  kgrpo_trainer* trainer = malloc(sizeof *trainer);
  if (trainer == NULL) return fail(&made, KGRPO_ERROR_INTERNAL, "out of memory");
  *trainer = made;
  *out = trainer;
  return NULL;
}

/* Whoever allocates frees. NULL is allowed. */
static void destroy(kgrpo_trainer* self) {
  if (self == NULL) return;
  free(self->parameters);
  free(self->moments);
  free(self);
}

static uint32_t source(const kgrpo_trainer* self) {
  (void)self;
  return KGRPO_TRAINER_ROLLOUTS;
}

/* There is no KL term. */
static int32_t needs_reference(const kgrpo_trainer* self) {
  (void)self;
  return 0;
}

/* The numbers of a tensor; NULL where they are not float32 in one piece on the CPU. */
static float* numbers_of(const kgrpo_tensor* tensor, size_t* size) {
  int64_t compact = 1;
  if (tensor->device.type != KGRPO_DEVICE_CPU || tensor->dtype.code != KGRPO_DTYPE_FLOAT || tensor->dtype.bits != 32)
    return NULL;
  for (int32_t d = tensor->ndim; d-- > 0; compact *= tensor->shape[d]) {
    if (tensor->strides != NULL && tensor->shape[d] > 1 && tensor->strides[d] != compact) return NULL;
  }
  *size = (size_t)compact;
  return (float*)((char*)tensor->data + tensor->byte_offset);
}

/* Gets the policy to train, and how many updates there will be. */
static kgrpo_error* begin(kgrpo_trainer* self, const kgrpo_policy_interface* api, kgrpo_policy* policy,
                          const kgrpo_trainer_plan* plan) {
  const kgrpo_parameter_group* const* groups = NULL;
  size_t group_count = 0, most = 0;
  kgrpo_error* error = api->parameters(policy, &groups, &group_count);
  if (error != NULL) return error;
  self->policy_api = api;
  self->policy = policy;
  self->temperature = plan->temperature > 0 ? plan->temperature : 1;
  for (size_t g = 0; g < group_count; ++g) most += groups[g]->parameter_count;
  self->parameters = calloc(most + 1, sizeof *self->parameters);
  if (self->parameters == NULL) return fail(self, KGRPO_ERROR_INTERNAL, "out of memory");
  for (size_t g = 0; g < group_count; ++g) {
    for (size_t p = 0; groups[g]->trainable && p < groups[g]->parameter_count; ++p) {
      floats* one = &self->parameters[self->parameter_count];
      one->values = numbers_of(groups[g]->parameters[p]->value, &one->size);
      one->gradients = numbers_of(groups[g]->parameters[p]->gradient, &one->size);
      if (one->values == NULL || one->gradients == NULL) {
        return fail(self, KGRPO_ERROR_UNSUPPORTED,
                    "a parameter is not float32 on the CPU; choose a policy that runs there in float32");
      }
      self->number_count += one->size;
      ++self->parameter_count;
    }
  }
  self->moments = calloc(2 * self->number_count + 1, sizeof *self->moments);
  return self->moments != NULL ? NULL : fail(self, KGRPO_ERROR_INTERNAL, "out of memory");
}

/* A view of `size` numbers, as tensors cross the ABI. `extent` outlives it. */
static kgrpo_tensor view(float* numbers, int64_t* extent) {
  kgrpo_tensor tensor = {0};
  tensor.data = numbers;
  tensor.device.type = KGRPO_DEVICE_CPU;
  tensor.ndim = 1;
  tensor.dtype.code = KGRPO_DTYPE_FLOAT;
  tensor.dtype.bits = 32;
  tensor.dtype.lanes = 1;
  tensor.shape = extent;
  return tensor;
}

/* The loss is -weight * log-probability of the completion: adds it to *loss, and its gradients to the policy's.
 * `scratch` holds completion_size numbers. */
static kgrpo_error* differentiate(kgrpo_trainer* self, const kgrpo_sample* sample, double weight, float* scratch,
                                  double* loss) {
  const kgrpo_sequence sequence = {sample->prompt_ids, sample->prompt_size, sample->completion_ids,
                                   sample->completion_size};
  int64_t extent = (int64_t)sample->completion_size;
  const kgrpo_tensor tensor = view(scratch, &extent);
  kgrpo_forward_context* context = NULL;
  kgrpo_forward_request request = {0};
  request.struct_size = sizeof request;
  request.sequences = &sequence;
  request.sequence_count = 1;
  request.copy = KGRPO_POLICY_CURRENT;
  request.temperature = self->temperature;
  request.need_gradient = 1;
  kgrpo_error* error = self->policy_api->forward(self->policy, &request, &tensor, NULL, &context);
  if (error != NULL) return error;
  for (size_t i = 0; i < sample->completion_size; ++i) {
    *loss -= weight * scratch[i];
    scratch[i] = (float)-weight; /* the derivative by each log-probability */
  }
  return self->policy_api->backward(self->policy, context, &tensor); /* ends the context in any case */
}

static double gradient_norm(const kgrpo_trainer* self) {
  double squares = 0;
  for (size_t p = 0; p < self->parameter_count; ++p) {
    for (size_t i = 0; i < self->parameters[p].size; ++i)
      squares += (double)self->parameters[p].gradients[i] * self->parameters[p].gradients[i];
  }
  return sqrt(squares);
}

/* Adam (Kingma and Ba 2015). */
static void step(kgrpo_trainer* self) {
  const double first = 0.9, second = 0.999, epsilon = 1e-8, number = (double)++self->steps;
  const double unbiased = sqrt(1 - pow(second, number));
  const double rate = self->learning_rate * unbiased / (1 - pow(first, number));
  double* moment = self->moments;
  for (size_t p = 0; p < self->parameter_count; ++p) {
    for (size_t i = 0; i < self->parameters[p].size; ++i, moment += 2) {
      const double gradient = self->parameters[p].gradients[i];
      moment[0] = first * moment[0] + (1 - first) * gradient;
      moment[1] = second * moment[1] + (1 - second) * gradient * gradient;
      self->parameters[p].values[i] -= (float)(rate * moment[0] / (sqrt(moment[1]) + epsilon * unbiased));
    }
  }
}

/* The mean reward of the samples of one problem. */
static double baseline(const kgrpo_sample* const* samples, size_t count, uint32_t problem) {
  double sum = 0, number = 0;
  for (size_t i = 0; i < count; ++i) {
    if (samples[i]->problem != problem) continue;
    sum += samples[i]->reward;
    number += 1;
  }
  return sum / number;
}

/* One update. If it fails, the parameters are as they were: only the last operation changes them. */
static kgrpo_error* update(kgrpo_trainer* self, const kgrpo_sample* const* samples, size_t count,
                           kgrpo_update_sink sink) {
  size_t longest = 1;
  for (size_t i = 0; i < count; ++i)
    longest = samples[i]->completion_size > longest ? samples[i]->completion_size : longest;
  float* scratch = malloc(longest * sizeof *scratch);
  if (scratch == NULL) return fail(self, KGRPO_ERROR_INTERNAL, "out of memory");
  double loss = 0;
  kgrpo_error* error = self->policy_api->zero_gradients(self->policy);
  for (size_t i = 0; error == NULL && i < count; ++i) {
    kgrpo_sample_outcome outcome = {0};
    outcome.struct_size = sizeof outcome;
    outcome.sample = i;
    outcome.returned = samples[i]->reward;
    outcome.advantage = samples[i]->reward - baseline(samples, count, samples[i]->problem);
    if (sink.sample != NULL) sink.sample(sink.context, &outcome);
    if (samples[i]->completion_size > 0)
      error = differentiate(self, samples[i], outcome.advantage / (double)count, scratch, &loss);
  }
  free(scratch);
  if (error != NULL) return error;
  const double norm = gradient_norm(self);
  if (!isfinite(loss + norm)) return fail(self, KGRPO_ERROR_NOT_FINITE, "the loss or a gradient is not finite");
  const kgrpo_str device = self->policy_api->info(self->policy)->device;
  error = self->api->lock_device(self->host->context, device);
  if (error != NULL) return error;
  step(self);
  self->api->unlock_device(self->host->context, device);
  sink.step(sink.context, (kgrpo_metric){KGRPO_LITERAL("loss"), loss, NAN, NAN});
  sink.step(sink.context, (kgrpo_metric){KGRPO_LITERAL("grad_norm"), norm, NAN, NAN});
  return NULL;
}

/* Writes the state that a resumed run needs to go on bit for bit. The host keeps the policy's parameters itself. */
static kgrpo_error* save_state(kgrpo_trainer* self, kgrpo_writer writer) {
  kgrpo_error* error = writer.write(writer.context, &self->steps, sizeof self->steps);
  if (error != NULL) return error;
  return writer.write(writer.context, self->moments, 2 * self->number_count * sizeof *self->moments);
}

/* As many bytes as were asked for, or an error. */
static kgrpo_error* read_all(const kgrpo_trainer* self, kgrpo_reader reader, void* data, size_t size) {
  for (size_t at = 0, got = 0; at < size; at += got) {
    kgrpo_error* error = reader.read(reader.context, (char*)data + at, size - at, &got);
    if (error != NULL) return error;
    if (got == 0) return fail(self, KGRPO_ERROR_INVALID, "the saved state is cut short, or of another policy");
  }
  return NULL;
}

static kgrpo_error* load_state(kgrpo_trainer* self, kgrpo_reader reader) {
  kgrpo_error* error = read_all(self, reader, &self->steps, sizeof self->steps);
  if (error != NULL) return error;
  return read_all(self, reader, self->moments, 2 * self->number_count * sizeof *self->moments);
}

/* The interface: its functions in the order of the header. struct_size says which of them these headers knew. */
static const kgrpo_trainer_interface trainer_interface = {sizeof(kgrpo_trainer_interface),
                                                          options_schema,
                                                          create,
                                                          destroy,
                                                          source,
                                                          needs_reference,
                                                          begin,
                                                          update,
                                                          save_state,
                                                          load_state,
                                                          /* check_plan, optional: */ NULL,
                                                          /* get_extension, optional: */ NULL};

/* The host asks for interfaces by id; NULL is "not offered". */
static const void* get_interface(kgrpo_str id) {
  const kgrpo_str ours = KGRPO_LITERAL(KGRPO_TRAINER_INTERFACE);
  return id.size == ours.size && memcmp(id.data, ours.data, id.size) == 0 ? &trainer_interface : NULL;
}

/* The one symbol that is exported. A pipeline names the plugin, and the file, as here: trainer_c. */
const kgrpo_plugin* kgrpo_plugin_entry(void) {
#define TEXT(literal) \
  { literal, sizeof(literal) - 1 }
  static const kgrpo_plugin plugin = {sizeof(kgrpo_plugin), KGRPO_ABI_MAJOR,
                                      KGRPO_ABI_MINOR,      TEXT("trainer_c"),
                                      TEXT("0.1.0"),        TEXT("REINFORCE with a baseline, in plain C"),
                                      get_interface};
  return &plugin;
}
