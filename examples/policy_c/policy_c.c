/* policy_c - a policy in plain C11 that reads nothing: one learned weight for each suggestion of a list. It finds the
 * suggestions that pay on average; a language model must beat it. The whole of a plugin: options, tokens, the model,
 * the bootstrap. It needs the headers of kgrpo and nothing else. */
#include <kgrpo/host.h>
#include <kgrpo/options.h>
#include <kgrpo/policy.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Token ids: bytes, then the suggestions, then the end. */
enum { FIRST = 256, CONTEXT = 1 << 20, PATH_SIZE = 4096 };

/* The instance: what create makes and the other functions get back. The type is ours; the host has pointers only. */
struct kgrpo_policy {
  const kgrpo_host* host;
  const kgrpo_host_interface* api;       /* errors, random numbers, the device lock */
  const kgrpo_options_interface* read;   /* options without a JSON library */
  char** words;                          /* the suggestions, and the text of the end */
  size_t count;                          /* of the suggestions */
  float *values, *gradients, *reference; /* `count` each; `reference` is valid if has_reference */
  int has_reference;
  int64_t extent;
  int32_t end_id;
  kgrpo_tensor value_tensor, gradient_tensor;
  kgrpo_parameter parameter;
  const kgrpo_parameter* parameters[1];
  kgrpo_parameter_group group;
  const kgrpo_parameter_group* groups[1];
  kgrpo_policy_info info;
};

/* A forward pass for backward: which suggestion each sequence begins with. */
struct kgrpo_forward_context {
  double temperature;
  size_t count;
  struct {
    size_t suggestion, tokens;
  } sequences[];
};

static kgrpo_str text_of(const char* text) {
  return (kgrpo_str){text, strlen(text)};
}

static kgrpo_error* fail(const kgrpo_policy* self, uint32_t code, const char* message) {
  return self->api->make_error(self->host->context, code, text_of(message));
}

static kgrpo_error* out_of_memory(const kgrpo_policy* self) {
  return fail(self, KGRPO_ERROR_INTERNAL, "out of memory");
}

/* Text and tokens. */

/* The longest word at each place of the text is one token. */
static kgrpo_error* encode(const kgrpo_policy* self, kgrpo_str text, kgrpo_token_sink sink) {
  int32_t* ids = malloc((text.size + 1) * sizeof *ids); /* a token has a byte at least */
  if (ids == NULL) return out_of_memory(self);
  size_t count = 0;
  for (size_t at = 0, size; at < text.size; at += size) {
    ids[count] = (unsigned char)text.data[at];
    size = 1;
    for (size_t w = 0, longest = 0; w <= self->count; ++w) {
      const size_t length = strlen(self->words[w]);
      if (length <= longest || length > text.size - at || memcmp(text.data + at, self->words[w], length) != 0) continue;
      ids[count] = FIRST + (int32_t)w;
      size = longest = length;
    }
    ++count;
  }
  sink.put(sink.context, ids, count);
  free(ids);
  return NULL;
}

static kgrpo_error* decode(const kgrpo_policy* self, const int32_t* ids, size_t count, int32_t skip_special,
                           kgrpo_text_sink sink) {
  size_t longest = 1, size = 0;
  for (size_t w = 0; w <= self->count; ++w) {
    const size_t length = strlen(self->words[w]);
    longest = length > longest ? length : longest;
  }
  char* text = malloc(count * longest + 1);
  if (text == NULL) return out_of_memory(self);
  for (size_t i = 0; i < count; ++i) {
    if (ids[i] < 0 || ids[i] > self->end_id) {
      free(text);
      return fail(self, KGRPO_ERROR_INVALID, "a token is outside the vocabulary");
    }
    if (ids[i] < FIRST) {
      text[size++] = (char)ids[i];
    } else if (!skip_special || ids[i] != self->end_id) {
      const char* word = self->words[ids[i] - FIRST];
      memcpy(text + size, word, strlen(word));
      size += strlen(word);
    }
  }
  sink.put(sink.context, (kgrpo_str){text, size});
  free(text);
  return NULL;
}

/* A chat as lines "role: content"; the opening of the answer ends it. The caller frees it; NULL: no memory. */
static char* chat_text(const kgrpo_message* messages, size_t count, int32_t answer) {
  static const char opening[] = "assistant: ";
  size_t size = sizeof opening;
  for (size_t i = 0; i < count; ++i) size += messages[i].role.size + messages[i].content.size + 3;
  char *text = malloc(size), *at = text;
  if (text == NULL) return NULL;
  for (size_t i = 0; i < count; ++i) {
    at += snprintf(at, size - (size_t)(at - text), "%.*s: %.*s\n", (int)messages[i].role.size, messages[i].role.data,
                   (int)messages[i].content.size, messages[i].content.data);
  }
  strcpy(at, answer ? opening : "");
  return text;
}

static kgrpo_error* encode_chat(const kgrpo_policy* self, const kgrpo_message* messages, size_t count,
                                const kgrpo_chat_options* options, kgrpo_token_sink sink) {
  char* text = chat_text(messages, count, options->add_generation_prompt);
  if (text == NULL) return out_of_memory(self);
  kgrpo_error* error = encode(self, text_of(text), sink);
  free(text);
  return error;
}

static kgrpo_error* render_chat(const kgrpo_policy* self, const kgrpo_message* messages, size_t count,
                                const kgrpo_chat_options* options, kgrpo_text_sink sink) {
  char* text = chat_text(messages, count, options->add_generation_prompt);
  if (text == NULL) return out_of_memory(self);
  sink.put(sink.context, text_of(text));
  free(text);
  return NULL;
}

/* The model: a completion is a suggestion, drawn by its weight, then the end. */

/* Log-probabilities of the suggestions at weights / temperature, into `count` numbers. */
static void log_softmax(const float* weights, size_t count, double temperature, double* logprobs) {
  double highest = weights[0], total = 0;
  for (size_t s = 1; s < count; ++s) highest = weights[s] > highest ? weights[s] : highest;
  for (size_t s = 0; s < count; ++s) {
    logprobs[s] = (weights[s] - highest) / temperature;
    total += exp(logprobs[s]);
  }
  for (size_t s = 0; s < count; ++s) logprobs[s] -= log(total);
}

/* The suggestion that `uniform`, of [0, 1), draws after top_k, top_p and min_p. `order` is memory for `count` numbers.
 */
static size_t draw(const double* logprobs, size_t count, const kgrpo_sampling* sampling, double uniform,
                   size_t* order) {
  for (size_t s = 0; s < count; ++s) { /* by insertion, the likeliest first */
    size_t at = s;
    for (; at > 0 && logprobs[order[at - 1]] < logprobs[s]; --at) order[at] = order[at - 1];
    order[at] = s;
  }
  if (sampling->temperature <= 0) return order[0];
  const size_t most = sampling->top_k > 0 && sampling->top_k < count ? sampling->top_k : count;
  double total = 0, mass = 0;
  for (size_t i = 0; i < most; ++i) total += exp(logprobs[order[i]]);
  size_t kept = 0;
  while (kept < most && (kept == 0 || sampling->top_p >= 1 || mass < sampling->top_p * total))
    mass += exp(logprobs[order[kept++]]);
  while (kept > 1 && exp(logprobs[order[kept - 1]] - logprobs[order[0]]) < sampling->min_p)
    mass -= exp(logprobs[order[--kept]]);
  double left = uniform * mass;
  for (size_t i = 0; i + 1 < kept; ++i) {
    left -= exp(logprobs[order[i]]);
    if (left < 0) return order[i];
  }
  return order[kept - 1];
}

/* One completion, which depends on prompt, seed, sampling and parameters alone. `logprobs` and `order` are memory for
 * `count` numbers each. */
static void write_completion(kgrpo_policy* self, const kgrpo_generate_request* request, double* logprobs,
                             size_t* order) {
  const kgrpo_sampling* sampling = request->sampling;
  log_softmax(self->values, self->count, sampling->temperature > 0 ? sampling->temperature : 1, logprobs);
  const uint64_t random = self->api->random(self->host->context, &request->seed, 1, 0);
  const size_t chosen = draw(logprobs, self->count, sampling, (double)(random >> 11) * 0x1p-53, order);
  const int32_t ids[] = {FIRST + (int32_t)chosen, self->end_id};
  const float token_logprobs[] = {(float)logprobs[chosen], 0}; /* nothing but the end can follow */
  const size_t room = CONTEXT - request->prompt_size;
  const size_t allowed = sampling->max_new_tokens < room ? sampling->max_new_tokens : room;
  kgrpo_completion completion = {0};
  completion.struct_size = sizeof completion;
  completion.size = allowed < 2 ? allowed : 2;
  completion.finish_reason = completion.size == 2 ? KGRPO_FINISH_STOP : KGRPO_FINISH_LENGTH;
  completion.ids = ids;
  completion.logprobs = token_logprobs;
  completion.text = text_of(completion.size > 0 ? self->words[chosen] : "");
  request->done.done(request->done.context, &completion, NULL);
}

/* Written at once, before it returns: a model that takes long would queue the requests for a thread of its own. Called
 * from several threads at once. */
static kgrpo_error* generate(kgrpo_policy* self, const kgrpo_generate_request* const* requests, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (requests[i]->prompt_size > 0 && requests[i]->prompt_size < CONTEXT) continue;
    char message[120];
    snprintf(message, sizeof message, "request %zu: a prompt of %zu tokens leaves no room in %d", i,
             requests[i]->prompt_size, CONTEXT);
    return fail(self, KGRPO_ERROR_INVALID, message);
  }
  double* logprobs = malloc(self->count * sizeof *logprobs);
  size_t* order = malloc(self->count * sizeof *order);
  kgrpo_error* error = logprobs == NULL || order == NULL ? out_of_memory(self) : NULL;
  for (size_t i = 0; error == NULL && i < count; ++i) write_completion(self, requests[i], logprobs, order);
  free(logprobs);
  free(order);
  return error;
}

/* Nothing is ever in flight. */
static void cancel(kgrpo_policy* self) {
  (void)self;
}

/* Training. */

static float* numbers_of(const kgrpo_tensor* tensor) {
  const int ours =
      tensor->device.type == KGRPO_DEVICE_CPU && tensor->dtype.code == KGRPO_DTYPE_FLOAT && tensor->dtype.bits == 32;
  return ours ? (float*)((char*)tensor->data + tensor->byte_offset) : NULL;
}

static kgrpo_error* wrong_token(const kgrpo_policy* self, size_t sequence, int32_t id) {
  char message[120];
  snprintf(message, sizeof message, "sequence %zu: token %d of its completion is none that this policy can write there",
           sequence, (int)id);
  return fail(self, KGRPO_ERROR_INVALID, message);
}

/* Log-probabilities, and entropies if asked for, sequence after sequence. `all` is memory for `count` numbers. */
static kgrpo_error* score(const kgrpo_policy* self, const kgrpo_forward_request* request, const float* weights,
                          double* all, float* logprobs, float* entropies, kgrpo_forward_context* context) {
  log_softmax(weights, self->count, request->temperature, all);
  double entropy = 0;
  for (size_t s = 0; s < self->count; ++s) entropy -= exp(all[s]) * all[s];
  for (size_t i = 0; i < request->sequence_count; ++i) {
    const kgrpo_sequence* sequence = &request->sequences[i];
    const int32_t first = sequence->completion_ids[0];
    if (first < FIRST || first >= self->end_id) return wrong_token(self, i, first);
    for (size_t t = 0; t < sequence->completion_size; ++t) {
      if (t > 0 && sequence->completion_ids[t] != self->end_id)
        return wrong_token(self, i, sequence->completion_ids[t]);
      *logprobs++ = t == 0 ? (float)all[first - FIRST] : 0;
      if (entropies != NULL) *entropies++ = t == 0 ? (float)entropy : 0;
    }
    if (context == NULL) continue;
    context->sequences[i].suggestion = (size_t)(first - FIRST);
    context->sequences[i].tokens = sequence->completion_size;
  }
  return NULL;
}

static kgrpo_error* forward(kgrpo_policy* self, const kgrpo_forward_request* request, const kgrpo_tensor* logprobs,
                            const kgrpo_tensor* entropies, kgrpo_forward_context** out) {
  if (request->copy == KGRPO_POLICY_REFERENCE && !self->has_reference)
    return fail(self, KGRPO_ERROR_INVALID, "there is no reference: freeze_reference was not called");
  if (numbers_of(logprobs) == NULL || (entropies != NULL && numbers_of(entropies) == NULL))
    return fail(self, KGRPO_ERROR_INVALID, "this policy takes float32 tensors on the CPU");
  const float* weights = request->copy == KGRPO_POLICY_REFERENCE ? self->reference : self->values;
  double* all = malloc(self->count * sizeof *all);
  kgrpo_forward_context* context = NULL;
  if (request->need_gradient) {
    context = malloc(sizeof *context + request->sequence_count * sizeof context->sequences[0]);
    if (context != NULL) {
      context->temperature = request->temperature;
      context->count = request->sequence_count;
    }
  }
  kgrpo_error* error = all == NULL || (request->need_gradient && context == NULL) ? out_of_memory(self) : NULL;
  if (error == NULL) {
    error = score(self, request, weights, all, numbers_of(logprobs), entropies == NULL ? NULL : numbers_of(entropies),
                  context);
  }
  free(all);
  if (error != NULL) {
    free(context);
  } else if (request->need_gradient) {
    *out = context;
  }
  return error;
}

static void release_context(kgrpo_policy* self, kgrpo_forward_context* context) {
  (void)self;
  free(context);
}

/* d logprob / d weight of suggestion s is (1 where it was chosen, else 0, less its probability) / temperature. The end
 * token has none. */
static kgrpo_error* backward(kgrpo_policy* self, kgrpo_forward_context* context, const kgrpo_tensor* dlogprobs) {
  const float* given = numbers_of(dlogprobs);
  double* all = malloc(self->count * sizeof *all);
  kgrpo_error* error = NULL;
  if (given == NULL) error = fail(self, KGRPO_ERROR_INVALID, "this policy takes float32 tensors on the CPU");
  if (error == NULL && all == NULL) error = out_of_memory(self);
  if (error == NULL) {
    log_softmax(self->values, self->count, context->temperature, all);
    for (size_t i = 0; i < context->count; given += context->sequences[i++].tokens) {
      for (size_t s = 0; s < self->count; ++s) {
        const double chosen = s == context->sequences[i].suggestion ? 1 : 0;
        self->gradients[s] += (float)(*given * (chosen - exp(all[s])) / context->temperature);
      }
    }
  }
  free(all);
  free(context);
  return error;
}

static kgrpo_error* parameters(kgrpo_policy* self, const kgrpo_parameter_group* const** groups, size_t* count) {
  *groups = self->groups;
  *count = 1;
  return NULL;
}

static kgrpo_error* zero_gradients(kgrpo_policy* self) {
  memset(self->gradients, 0, self->count * sizeof *self->gradients);
  return NULL;
}

static kgrpo_error* freeze_reference(kgrpo_policy* self) {
  memcpy(self->reference, self->values, self->count * sizeof *self->values);
  self->has_reference = 1;
  return NULL;
}

/* Saved folders: parameters.bin, float32 as they lie in memory. `transformers` cannot open them. */

static FILE* open_parameters(kgrpo_str directory, const char* mode) {
  char path[PATH_SIZE];
  snprintf(path, sizeof path, "%.*s/parameters.bin", (int)directory.size, directory.data);
  return fopen(path, mode);
}

static kgrpo_error* save(kgrpo_policy* self, uint32_t copy, kgrpo_str directory) {
  if (copy == KGRPO_POLICY_REFERENCE && !self->has_reference)
    return fail(self, KGRPO_ERROR_INVALID, "there is no reference: freeze_reference was not called");
  const float* from = copy == KGRPO_POLICY_REFERENCE ? self->reference : self->values;
  FILE* file = open_parameters(directory, "wb");
  const size_t written = file == NULL ? 0 : fwrite(from, sizeof *from, self->count, file);
  if (file == NULL || fclose(file) != 0 || written != self->count)
    return fail(self, KGRPO_ERROR_UNAVAILABLE, "cannot write parameters.bin in the policy's folder");
  return NULL;
}

/* On failure the weights are unchanged. */
static kgrpo_error* load(kgrpo_policy* self, uint32_t copy, kgrpo_str directory) {
  FILE* file = open_parameters(directory, "rb");
  if (file == NULL) return fail(self, KGRPO_ERROR_NOT_FOUND, "there is no parameters.bin in the policy's folder");
  float* read = malloc((self->count + 1) * sizeof *read);
  const size_t got = read == NULL ? 0 : fread(read, sizeof *read, self->count + 1, file);
  fclose(file);
  if (got == self->count) {
    memcpy(copy == KGRPO_POLICY_REFERENCE ? self->reference : self->values, read, self->count * sizeof *read);
    self->has_reference |= copy == KGRPO_POLICY_REFERENCE;
  }
  free(read);
  if (got != self->count)
    return fail(self, KGRPO_ERROR_INVALID,
                "parameters.bin is of another policy: a number for each suggestion is wanted");
  return NULL;
}

/* Making an instance. */

/* What `options:` of a pipeline may hold. The host checks the pipeline against this JSON Schema and fills the defaults
 * in before it calls create, which therefore finds every option, with the right type. */
static kgrpo_str options_schema(void) {
  return KGRPO_LITERAL(
      "{\"title\": \"policy_c\", \"type\": \"object\", \"additionalProperties\": false, \"properties\": {"
      "\"model\": {\"title\": \"model\", \"type\": \"string\", \"default\": \"\","
      "  \"description\": \"A folder that a run has saved; empty: all suggestions are equally likely.\"},"
      "\"suggestions\": {\"title\": \"suggestions\", \"type\": \"array\", \"minItems\": 1, \"uniqueItems\": true,"
      "  \"items\": {\"type\": \"string\", \"minLength\": 1},"
      "  \"default\": [\"vectorize loads 4\", \"unroll 4\", \"shared memory tile\", \"warp shuffle reduction\","
      "    \"fast intrinsics\"],"
      "  \"description\": \"What it may suggest. A saved model goes with the list that it was trained with.\"}}}");
}

/* Whoever allocates frees. NULL is allowed. */
static void destroy(kgrpo_policy* self) {
  if (self == NULL) return;
  for (size_t w = 0; self->words != NULL && w <= self->count; ++w) free(self->words[w]);
  free(self->words);
  free(self->values);
  free(self->gradients);
  free(self->reference);
  free(self);
}

/* A copy that ends in a zero; *target stays NULL where memory is out. */
static void keep_text(void* target, kgrpo_str text) {
  char* copy = malloc(text.size + 1);
  if (copy != NULL) {
    memcpy(copy, text.data, text.size);
    copy[text.size] = 0;
  }
  *(char**)target = copy;
}

static kgrpo_error* read_text(const kgrpo_policy* self, kgrpo_str options, const char* path, char** out) {
  const kgrpo_text_sink sink = {out, keep_text};
  kgrpo_error* error = self->read->text(self->host->context, options, text_of(path), sink);
  return error != NULL || *out != NULL ? error : out_of_memory(self);
}

/* Fills in the suggestions and the numbers of a new policy. */
static kgrpo_error* fill(kgrpo_policy* self, kgrpo_str options) {
  size_t count = 0;
  kgrpo_error* error = self->read->count(self->host->context, options, KGRPO_LITERAL("suggestions"), &count);
  if (error != NULL) return error;
  self->count = count;
  self->words = calloc(count + 1, sizeof *self->words);
  self->values = calloc(count, sizeof(float));
  self->gradients = calloc(count, sizeof(float));
  self->reference = calloc(count, sizeof(float));
  if (self->words == NULL || self->values == NULL || self->gradients == NULL || self->reference == NULL)
    return out_of_memory(self);
  for (size_t w = 0; w < count; ++w) {
    char path[40];
    snprintf(path, sizeof path, "suggestions.%zu", w);
    error = read_text(self, options, path, &self->words[w]);
    if (error != NULL) return error;
  }
  keep_text(&self->words[count], KGRPO_LITERAL("<|end|>"));
  return self->words[count] != NULL ? NULL : out_of_memory(self);
}

/* Fills in what parameters() and info() return. */
static void describe(kgrpo_policy* self) {
  kgrpo_tensor tensor = {0};
  self->extent = (int64_t)self->count;
  self->end_id = FIRST + (int32_t)self->count;
  tensor.device.type = KGRPO_DEVICE_CPU;
  tensor.ndim = 1;
  tensor.dtype.code = KGRPO_DTYPE_FLOAT;
  tensor.dtype.bits = 32;
  tensor.dtype.lanes = 1;
  tensor.shape = &self->extent;
  self->value_tensor = self->gradient_tensor = tensor;
  self->value_tensor.data = self->values;
  self->gradient_tensor.data = self->gradients;
  self->parameter.struct_size = sizeof self->parameter;
  self->parameter.name = self->group.name = KGRPO_LITERAL("parameters");
  self->parameter.value = &self->value_tensor;
  self->parameter.gradient = &self->gradient_tensor;
  self->parameters[0] = &self->parameter;
  self->group.struct_size = sizeof self->group;
  self->group.trainable = 1;
  self->group.parameters = self->parameters;
  self->group.parameter_count = 1;
  self->groups[0] = &self->group;
  self->info.struct_size = sizeof self->info;
  self->info.architecture = KGRPO_LITERAL("Bandit");
  self->info.device = KGRPO_LITERAL("cpu");
  self->info.parameter_count = self->count;
  self->info.vocabulary_size = (uint32_t)self->end_id + 1;
  self->info.context_length = CONTEXT;
  self->info.end_ids = &self->end_id;
  self->info.end_id_count = 1;
  self->info.reproducible = 1;
}

/* Makes an instance, or returns an error, which the caller releases. *out is written on success only. */
static kgrpo_error* create(const kgrpo_host* host, kgrpo_str options, kgrpo_policy** out) {
  const kgrpo_host_interface* api = host->get_interface(host->context, KGRPO_LITERAL(KGRPO_HOST_INTERFACE));
  kgrpo_policy* self = calloc(1, sizeof *self);
  if (self == NULL) return api->make_error(host->context, KGRPO_ERROR_INTERNAL, KGRPO_LITERAL("out of memory"));
  self->host = host;
  self->api = api;
  self->read = host->get_interface(host->context, KGRPO_LITERAL(KGRPO_OPTIONS_INTERFACE));
  char* model = NULL;
  kgrpo_error* error = fill(self, options);
  if (error == NULL) error = read_text(self, options, "model", &model);
  if (error == NULL) {
    describe(self);
    if (*model != 0) error = load(self, KGRPO_POLICY_CURRENT, text_of(model));
  }
  free(model);
  if (error != NULL) {
    destroy(self);
    return error;
  }
  *out = self;
  return NULL;
}

static const kgrpo_policy_info* info(const kgrpo_policy* self) {
  return &self->info;
}

/* The interface: its functions in the order of the header. struct_size says which of them these headers knew. */
static const kgrpo_policy_interface policy_interface = {sizeof(kgrpo_policy_interface),
                                                        options_schema,
                                                        create,
                                                        destroy,
                                                        info,
                                                        encode_chat,
                                                        render_chat,
                                                        encode,
                                                        decode,
                                                        generate,
                                                        cancel,
                                                        forward,
                                                        backward,
                                                        release_context,
                                                        parameters,
                                                        zero_gradients,
                                                        freeze_reference,
                                                        save,
                                                        load,
                                                        /* backward_in_pieces, optional: */ NULL,
                                                        /* get_extension, optional: */ NULL};

/* The host asks for interfaces by id; NULL is "not offered". */
static const void* get_interface(kgrpo_str id) {
  const kgrpo_str ours = KGRPO_LITERAL(KGRPO_POLICY_INTERFACE);
  return id.size == ours.size && memcmp(id.data, ours.data, id.size) == 0 ? &policy_interface : NULL;
}

/* The one symbol that is exported. A pipeline names the plugin, and the file, as here: policy_c. */
const kgrpo_plugin* kgrpo_plugin_entry(void) {
#define TEXT(literal) \
  { literal, sizeof(literal) - 1 }
  static const kgrpo_plugin plugin = {
      sizeof(kgrpo_plugin), KGRPO_ABI_MAJOR, KGRPO_ABI_MINOR,
      TEXT("policy_c"),     TEXT("0.1.0"),   TEXT("learns how often to make each suggestion, in plain C"),
      get_interface};
  return &plugin;
}
