/* kgrpo/policy.h - the policy interface, "kgrpo.policy/1".
 *
 * A policy is a language model with its tokenizer and chat template. It writes suggestions (generate), tells how likely
 * given completions are (forward), and accumulates gradients for whatever a trainer wants (backward): the trainer hands
 * over the derivative of its loss by each token's log-probability and needs to know nothing else about the model.
 *
 * Called by the host's rollout (encode_chat, generate), by trainers (forward, backward, parameters), and by the host's
 * checkpoints (save, load). An instance is used by one thread at a time. A policy locks its device itself, in every
 * function that works there (kgrpo_host.lock_device); callers don't hold that lock.
 *
 * Two copies of the parameters exist: the current one, which trains, and a frozen reference, absent until
 * freeze_reference is called.
 */
#ifndef KGRPO_POLICY_H
#define KGRPO_POLICY_H
#include "abi.h"    /* kgrpo_str, kgrpo_error */
#include "host.h"   /* kgrpo_host */
#include "tensor.h" /* kgrpo_tensor */

#ifdef __cplusplus
extern "C" {
#endif

#define KGRPO_POLICY_INTERFACE "kgrpo.policy/1"

/* One message of a chat. role: "system", "user" or "assistant". Frozen. */
typedef struct kgrpo_message {
  kgrpo_str role;
  kgrpo_str content;
} kgrpo_message;

/* Where token ids and text are pushed. Valid only during the call that received it. Frozen. */
typedef struct kgrpo_token_sink {
  void* context;
  void (*put)(void* context, const int32_t* ids, size_t count);
} kgrpo_token_sink;

typedef struct kgrpo_text_sink {
  void* context;
  void (*put)(void* context, kgrpo_str text);
} kgrpo_text_sink;

/* What a model is. Strings and arrays live as long as the instance. */
typedef struct kgrpo_policy_info {
  uint32_t struct_size;
  kgrpo_str architecture; /* "Qwen2ForCausalLM" */
  kgrpo_str device;       /* as lock_device wants it: "cpu", "cuda:0" */
  uint64_t parameter_count;
  uint32_t vocabulary_size;
  uint32_t context_length; /* prompt and completion together */
  const int32_t* end_ids;  /* every id that ends a completion */
  size_t end_id_count;
} kgrpo_policy_info;

#define KGRPO_POLICY_INFO_SIZE_1 KGRPO_SIZEOF_THROUGH(kgrpo_policy_info, end_id_count)

/* How encode_chat writes a chat. */
typedef struct kgrpo_chat_options {
  uint32_t struct_size;
  int32_t add_generation_prompt; /* nonzero: end with the opening of the assistant's answer */
  int32_t enable_thinking;       /* 0 off, 1 on, -1 as the template or the instance's options have it */
} kgrpo_chat_options;

#define KGRPO_CHAT_OPTIONS_SIZE_1 KGRPO_SIZEOF_THROUGH(kgrpo_chat_options, enable_thinking)

/* How completions are sampled. Applied in this order: temperature, top_k, top_p, min_p. */
typedef struct kgrpo_sampling {
  uint32_t struct_size;
  uint32_t max_new_tokens;
  double temperature; /* 0 takes the likeliest token always */
  uint32_t top_k;     /* 0: off */
  double top_p;       /* 1: off */
  double min_p;       /* 0: off */
} kgrpo_sampling;

#define KGRPO_SAMPLING_SIZE_1 KGRPO_SIZEOF_THROUGH(kgrpo_sampling, min_p)

/* One completion to write. The token at each position depends on the prompt, the parameters, the sampling and the seed
 * alone, up to rounding that may differ with the composition of the batch. Frozen. */
typedef struct kgrpo_generate_request {
  const int32_t* prompt_ids;
  size_t prompt_size; /* at least 1 */
  uint64_t seed;
} kgrpo_generate_request;

typedef enum kgrpo_finish_reason {
  KGRPO_FINISH_STOP = 0,  /* an end token was sampled; it is the last of ids */
  KGRPO_FINISH_LENGTH = 1 /* max_new_tokens or the context length was reached */
} kgrpo_finish_reason;

/* A finished completion. Valid during the callback only. */
typedef struct kgrpo_completion {
  uint32_t struct_size;
  size_t request;         /* index into the requests */
  const int32_t* ids;     /* sampled tokens, the end token included */
  const float* logprobs;  /* of each of ids, of logits / temperature (of logits at 0), full vocabulary */
  size_t size;            /* of ids and logprobs */
  kgrpo_str text;         /* ids decoded, without special tokens */
  uint32_t finish_reason; /* a kgrpo_finish_reason */
} kgrpo_completion;

#define KGRPO_COMPLETION_SIZE_1 KGRPO_SIZEOF_THROUGH(kgrpo_completion, finish_reason)

/* Where completions are pushed, in any order, each as soon as it is finished. Frozen. */
typedef struct kgrpo_completion_sink {
  void* context;
  void (*put)(void* context, const kgrpo_completion* completion);
} kgrpo_completion_sink;

/* One sequence whose completion's log-probabilities are wanted. Frozen. */
typedef struct kgrpo_sequence {
  const int32_t* prompt_ids;
  size_t prompt_size; /* at least 1 */
  const int32_t* completion_ids;
  size_t completion_size; /* at least 1 */
} kgrpo_sequence;

typedef enum kgrpo_policy_copy {
  KGRPO_POLICY_CURRENT = 0,
  KGRPO_POLICY_REFERENCE = 1 /* an error before freeze_reference */
} kgrpo_policy_copy;

/* A forward pass that can be differentiated: an opaque object of the policy. */
typedef struct kgrpo_forward_context kgrpo_forward_context;

typedef struct kgrpo_forward_request {
  uint32_t struct_size;
  const kgrpo_sequence* sequences;
  size_t sequence_count;
  uint32_t copy;         /* a kgrpo_policy_copy */
  double temperature;    /* log-probabilities are of logits / temperature; > 0 */
  int32_t need_gradient; /* nonzero: *context is made, for backward; only of the current copy */
} kgrpo_forward_request;

#define KGRPO_FORWARD_REQUEST_SIZE_1 KGRPO_SIZEOF_THROUGH(kgrpo_forward_request, need_gradient)

/* A parameter tensor. Views are borrowed and stay valid, at the same addresses, until the instance is destroyed.
 * Frozen. */
typedef struct kgrpo_parameter {
  kgrpo_str name;         /* as the model's files name it: "model.layers.0.self_attn.q_proj.weight" */
  kgrpo_tensor* value;    /* float32 or bfloat16; written in place by the trainer */
  kgrpo_tensor* gradient; /* float32, same shape and device; backward adds to it, zero_gradients clears it */
  int32_t decay;          /* nonzero for matrices: weight decay applies; zero for norms and biases */
} kgrpo_parameter;

typedef struct kgrpo_policy kgrpo_policy; /* an instance; the plugin's own type */

typedef struct kgrpo_policy_interface {
  uint32_t struct_size;

  /* JSON Schema (draft 7) of the options, with a title, a default and a description for each. Static. [any thread] */
  kgrpo_str (*options_schema)(void);

  /* Loads or initialises a model. `options` is JSON that satisfies the schema, defaults filled in. `host` outlives the
   * instance. [main thread] */
  kgrpo_error* (*create)(const kgrpo_host* host, kgrpo_str options, kgrpo_policy** out);
  void (*destroy)(kgrpo_policy* self); /* NULL is allowed. [main thread] */

  /* What the model is; lives as long as the instance. [any thread] */
  const kgrpo_policy_info* (*info)(const kgrpo_policy* self);

  /* Text to ids and back. encode_chat applies the model's chat template; encode takes text as it is, special tokens in
   * it recognised, nothing added. render_chat pushes the text that encode_chat would encode. [one thread] */
  kgrpo_error* (*encode_chat)(kgrpo_policy* self, const kgrpo_message* messages, size_t count,
                              const kgrpo_chat_options* options, kgrpo_token_sink sink);
  kgrpo_error* (*render_chat)(kgrpo_policy* self, const kgrpo_message* messages, size_t count,
                              const kgrpo_chat_options* options, kgrpo_text_sink sink);
  kgrpo_error* (*encode)(kgrpo_policy* self, kgrpo_str text, kgrpo_token_sink sink);
  kgrpo_error* (*decode)(kgrpo_policy* self, const int32_t* ids, size_t count, int32_t skip_special,
                         kgrpo_text_sink sink);

  /* Samples one completion a request with the current parameters. A prompt that leaves no room in the context is an
   * error that names the request. Returns after the last was pushed, or soon after the host's cancel. [one thread] */
  kgrpo_error* (*generate)(kgrpo_policy* self, const kgrpo_generate_request* requests, size_t count,
                           const kgrpo_sampling* sampling, kgrpo_completion_sink sink);

  /* Log-probabilities of the completions' tokens: logprobs[i] for all tokens of all completions, sequence after
   * sequence, sum(completion_size) floats in the caller's memory. entropies, of the same size, receives the entropy of
   * each token's distribution in nats; may be NULL. With need_gradient a context is made, which backward or
   * release_context ends; else *context is untouched and may be NULL. [one thread] */
  kgrpo_error* (*forward)(kgrpo_policy* self, const kgrpo_forward_request* request, float* logprobs, float* entropies,
                          kgrpo_forward_context** context);

  /* Adds to the gradients: sum_i dlogprobs[i] * d logprobs[i] / d parameter, for the tokens of the context's forward,
   * in its order. Ends the context whether it succeeds or not. Parameters must not have changed since. [one thread] */
  kgrpo_error* (*backward)(kgrpo_policy* self, kgrpo_forward_context* context, const float* dlogprobs);
  void (*release_context)(kgrpo_policy* self, kgrpo_forward_context* context); /* NULL is allowed. [one thread] */

  /* The parameters, in the same order always. Lives as long as the instance. [one thread] */
  const kgrpo_parameter* (*parameters)(kgrpo_policy* self, size_t* count);
  kgrpo_error* (*zero_gradients)(kgrpo_policy* self); /* [one thread] */

  /* Copies the current parameters to the reference. [one thread] */
  kgrpo_error* (*freeze_reference)(kgrpo_policy* self);

  /* Writes a Hugging Face folder that `transformers` opens: configuration, tokenizer, weights of that copy, in the
   * instance's dtype. `directory` exists and is empty; on failure its content is undefined. [one thread] */
  kgrpo_error* (*save)(kgrpo_policy* self, uint32_t copy, kgrpo_str directory);

  /* Replaces that copy's weights by those of a folder that save wrote or that has the same shapes; bit-exact after
   * save. Loading the reference makes it present. On failure the weights are unchanged. [one thread] */
  kgrpo_error* (*load)(kgrpo_policy* self, uint32_t copy, kgrpo_str directory);
} kgrpo_policy_interface;

/* The size of the struct as released in revision 1. Members are appended below, never moved: this never changes. */
#define KGRPO_POLICY_INTERFACE_SIZE_1 KGRPO_SIZEOF_THROUGH(kgrpo_policy_interface, load)

#ifdef __cplusplus
}
#endif
#endif
