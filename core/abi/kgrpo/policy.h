/* SPDX-License-Identifier: Apache-2.0 */
/* kgrpo/policy.h - the policy interface, "kgrpo.policy/1".
 *
 * A policy is a language model with its tokenizer and chat template. It writes suggestions (generate), computes the
 * log-probabilities of given completions (forward), and accumulates gradients (backward): the trainer passes the
 * derivative of its loss by each token's log-probability and needs to know nothing else about the model.
 *
 * Called by the host's rollout (encode_chat, generate), by trainers (forward, backward, parameters), and by the host's
 * checkpoints (save, load). A policy locks its device itself, in every function that works there
 * (kgrpo_host_interface.lock_device); callers don't hold that lock.
 *
 * Generation is a queue: requests are submitted at any time, any number are in flight, and each completion is pushed as
 * soon as it ends. A policy that can only generate batch after batch uses kgrpo/sdk/generation_queue.h. While requests
 * are in flight the parameters must not change, neither by a trainer nor by load; forward may be called.
 *
 * Where info().reproducible is set, a completion depends only on prompt, seed, sampling and parameters, bit for bit:
 * not on its batch, nor on when it was submitted. Then a run is reproducible however long coder and evaluator take.
 *
 * Two copies of the parameters exist: the current one, which trains, and a frozen reference, absent until
 * freeze_reference is called.
 */
#ifndef KGRPO_POLICY_H
#define KGRPO_POLICY_H
#include "abi.h"    /* kgrpo_str, kgrpo_error, kgrpo_host, kgrpo_text_sink */
#include "tensor.h" /* kgrpo_tensor */

#define KGRPO_POLICY_INTERFACE "kgrpo.policy/1"

/* Receives token ids; valid only during the call that received it. Frozen. */
typedef struct kgrpo_token_sink {
  void* context;
  void (*put)(void* context, const int32_t* ids, size_t count);
} kgrpo_token_sink;

/* One message of a chat. role: "system", "user", "assistant" or "tool". Frozen. */
typedef struct kgrpo_message {
  kgrpo_str role;
  kgrpo_str content;
  kgrpo_str members; /* what else it has, such as thoughts and calls of tools, as the chat template names it: the text
                        of a JSON object like {"reasoning_content": ..., "tool_calls": [...]}, whose "content" (null, or
                        parts) replaces the one above. Empty: nothing. Only for a policy whose info says
                        reads_chat_arguments */
} kgrpo_message;

/* Description of a model. Strings and arrays live as long as the instance. */
typedef struct kgrpo_policy_info {
  uint32_t struct_size;
  kgrpo_str architecture; /* "Qwen2ForCausalLM" */
  kgrpo_str device;       /* as lock_device wants it: "cpu", "cuda:0" */
  uint64_t parameter_count;
  uint32_t vocabulary_size;
  uint32_t context_length; /* prompt and completion together */
  const int32_t* end_ids;  /* every id that ends a completion */
  size_t end_id_count;
  void* stream; /* on a GPU the stream (a cudaStream_t) that orders parameters, gradients and the results of forward:
                   queue work that changes them on it. NULL is a GPU's default stream, and on a CPU nothing */
  const int32_t* prefix_ids; /* what belongs in front of a text that no chat template has written, such as <s>; encode
                                does not add it */
  size_t prefix_id_count;
  int32_t reads_chat_arguments; /* nonzero: kgrpo_chat_options.arguments and kgrpo_message.members are read */
  int32_t reproducible;         /* nonzero: completions do not depend on the batch, bit for bit; see above */
} kgrpo_policy_info;

#define KGRPO_POLICY_INFO_SIZE_1 KGRPO_SIZEOF_THROUGH(kgrpo_policy_info, reproducible)

/* How encode_chat writes a chat. */
typedef struct kgrpo_chat_options {
  uint32_t struct_size;
  int32_t add_generation_prompt; /* nonzero: end with the opening of the assistant's answer */
  int32_t enable_thinking;       /* 0 off, 1 on, -1 as set by the template or the instance's options */
  /* Further arguments of the chat template: the text of a JSON object, such as {"tools": [...]}. Empty: none. Only for
   * a policy whose info says reads_chat_arguments. */
  kgrpo_str arguments;
} kgrpo_chat_options;

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

typedef enum kgrpo_finish_reason {
  KGRPO_FINISH_STOP = 0,  /* an end token was sampled; it is the last of ids */
  KGRPO_FINISH_LENGTH = 1 /* max_new_tokens or the context length was reached */
} kgrpo_finish_reason;

/* A finished completion. Valid during the callback only. */
typedef struct kgrpo_completion {
  uint32_t struct_size;
  uint32_t finish_reason; /* a kgrpo_finish_reason */
  const int32_t* ids;     /* sampled tokens, the end token included */
  const float* logprobs;  /* one for each of ids: of logits / temperature (of logits at temperature 0), over the full
                             vocabulary */
  size_t size;            /* of ids and logprobs */
  kgrpo_str text;         /* ids decoded, without special tokens */
} kgrpo_completion;

#define KGRPO_COMPLETION_SIZE_1 KGRPO_SIZEOF_THROUGH(kgrpo_completion, text)

/* Receives the outcome of a request, exactly once, from any thread, possibly before generate returned. Exactly one
 * of `completion` and `error` is given; the callee releases the error. Called without the device's lock, and free to
 * call generate again. Frozen. */
typedef struct kgrpo_completion_done {
  void* context;
  void (*done)(void* context, const kgrpo_completion* completion, kgrpo_error* error);
} kgrpo_completion_done;

/* One completion to write. */
typedef struct kgrpo_generate_request {
  uint32_t struct_size;
  const int32_t* prompt_ids;
  size_t prompt_size; /* at least 1 */
  uint64_t seed;
  const kgrpo_sampling* sampling;
  kgrpo_completion_done done;
} kgrpo_generate_request;

#define KGRPO_GENERATE_REQUEST_SIZE_1 KGRPO_SIZEOF_THROUGH(kgrpo_generate_request, done)

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

/* A parameter tensor. Views are borrowed and stay valid, at the same addresses, until the instance is destroyed. */
typedef struct kgrpo_parameter {
  uint32_t struct_size;
  kgrpo_str name;               /* as the model's files name it: "model.layers.0.self_attn.q_proj.weight" */
  const kgrpo_tensor* value;    /* float32 or bfloat16; written in place by the trainer */
  const kgrpo_tensor* gradient; /* float32, same shape and device; backward adds to it, zero_gradients clears it. NULL
                                   in a group that is not trainable */
} kgrpo_parameter;

#define KGRPO_PARAMETER_SIZE_1 KGRPO_SIZEOF_THROUGH(kgrpo_parameter, gradient)

/* Parameters that are treated alike. */
typedef struct kgrpo_parameter_group {
  uint32_t struct_size;
  kgrpo_str name;    /* "matrices", "norms and biases" */
  int32_t trainable; /* zero: frozen weights, which a trainer leaves alone */
  int32_t decay;     /* nonzero: weight decay applies (matrices); zero for norms and biases */
  const kgrpo_parameter* const* parameters;
  size_t parameter_count;
  /* If all values of the group lie in one buffer, and all gradients in another: 1-D tensors of these buffers. Each
   * parameter is a slice, at the same offset in both; gaps between slices hold zeros and may be written with zeros.
   * NULL where the policy has no such buffers. */
  const kgrpo_tensor* flat_value;
  const kgrpo_tensor* flat_gradient;
} kgrpo_parameter_group;

#define KGRPO_PARAMETER_GROUP_SIZE_1 KGRPO_SIZEOF_THROUGH(kgrpo_parameter_group, flat_gradient)

/* Receives a piece of the gradients that is final: a compact, one-dimensional view, valid during the call, of elements
 * of one flat_gradient or of one parameter's gradient. Frozen. */
typedef struct kgrpo_gradient_sink {
  void* context;
  void (*ready)(void* context, const kgrpo_tensor* piece);
} kgrpo_gradient_sink;

typedef struct kgrpo_policy kgrpo_policy; /* an instance; the plugin's own type */

typedef struct kgrpo_policy_interface {
  uint32_t struct_size;

  /* JSON Schema (draft 7) of the options, with a title, a default and a description for each. "x-resume": true marks an
   * option that a resumed run may change. Static. [any thread] */
  kgrpo_str (*options_schema)(void);

  /* Loads or initialises a model. `options` is JSON that satisfies the schema, defaults filled in. `host` outlives the
   * instance. [main thread] */
  kgrpo_error* (*create)(const kgrpo_host* host, kgrpo_str options, kgrpo_policy** out);
  void (*destroy)(kgrpo_policy* self); /* NULL is allowed. Nothing is in flight then. [main thread] */

  /* The model's description; lives as long as the instance. [any thread] */
  const kgrpo_policy_info* (*info)(const kgrpo_policy* self);

  /* Text to ids and back. encode_chat applies the model's chat template; encode takes text as it is, special tokens in
   * it recognised, nothing added. render_chat pushes the text that encode_chat would encode. [any thread] */
  kgrpo_error* (*encode_chat)(const kgrpo_policy* self, const kgrpo_message* messages, size_t count,
                              const kgrpo_chat_options* options, kgrpo_token_sink sink);
  kgrpo_error* (*render_chat)(const kgrpo_policy* self, const kgrpo_message* messages, size_t count,
                              const kgrpo_chat_options* options, kgrpo_text_sink sink);
  kgrpo_error* (*encode)(const kgrpo_policy* self, kgrpo_str text, kgrpo_token_sink sink);
  kgrpo_error* (*decode)(const kgrpo_policy* self, const int32_t* ids, size_t count, int32_t skip_special,
                         kgrpo_text_sink sink);

  /* Submits requests, copies what it needs of them, and returns without waiting; requests of one call are best batched.
   * On an error (a prompt that leaves no room in the context, with the request's index in the message) none was
   * accepted, and no `done` is called. [any thread] */
  kgrpo_error* (*generate)(kgrpo_policy* self, const kgrpo_generate_request* const* requests, size_t count);

  /* Asks that every request in flight be ended soon, with KGRPO_ERROR_CANCELLED. Requests that are submitted later are
   * not. [any thread] */
  void (*cancel)(kgrpo_policy* self);

  /* Log-probabilities of the completions' tokens: for all tokens of all completions, sequence after sequence,
   * sum(completion_size) float32 values in one dimension, in the caller's memory on the CPU or on the policy's device.
   * entropies, of the same size and place, receives the entropy of each token's distribution in nats; may be NULL. With
   * need_gradient a context is made, which backward or release_context ends; else *context is untouched, and `context`
   * may be NULL. Results on the CPU are there on return; those on a GPU in the order of the policy's stream.
   * [one thread] */
  kgrpo_error* (*forward)(kgrpo_policy* self, const kgrpo_forward_request* request, const kgrpo_tensor* logprobs,
                          const kgrpo_tensor* entropies, kgrpo_forward_context** context);

  /* Adds to the gradients: sum_i dlogprobs[i] * d logprobs[i] / d parameter, for the tokens of the context's
   * forward, in its order; dlogprobs has the size and place of forward's logprobs. Ends the context whether it
   * succeeds or not. Parameters must not have changed since. [one thread] */
  kgrpo_error* (*backward)(kgrpo_policy* self, kgrpo_forward_context* context, const kgrpo_tensor* dlogprobs);
  void (*release_context)(kgrpo_policy* self, kgrpo_forward_context* context); /* NULL is allowed. [one thread] */

  /* The parameters by group, in the same order always; they live as long as the instance. The first call makes the
   * gradients. [one thread] */
  kgrpo_error* (*parameters)(kgrpo_policy* self, const kgrpo_parameter_group* const** groups, size_t* count);
  kgrpo_error* (*zero_gradients)(kgrpo_policy* self); /* [one thread] */

  /* Copies the current parameters to the reference. [one thread] */
  kgrpo_error* (*freeze_reference)(kgrpo_policy* self);

  /* Writes a Hugging Face folder that `transformers` opens: configuration, tokenizer, weights of that copy, in the
   * instance's dtype. `directory` exists and is empty; on failure its content is undefined. [one thread] */
  kgrpo_error* (*save)(kgrpo_policy* self, uint32_t copy, kgrpo_str directory);

  /* Replaces that copy's weights by those of a folder that save wrote or that has the same shapes; bit-exact after
   * save. Loading the reference makes it present. On failure the weights are unchanged. [one thread] */
  kgrpo_error* (*load)(kgrpo_policy* self, uint32_t copy, kgrpo_str directory);

  /* Like backward, for the last context before the gradients are used. `sink` receives each piece of the gradients
   * once the call has added everything to it: the last layers first, no element twice, the gaps of flat buffers too.
   * Elements that were not pushed are final on return. So ranks can reduce a piece while the rest is computed. The
   * sink is called on this thread while the policy holds its device. On a GPU a piece is final in the order of the
   * policy's stream. The callee may write to the piece from then on; it neither locks the device nor calls the
   * policy. NULL for a policy that pushes no pieces. [one thread] */
  kgrpo_error* (*backward_in_pieces)(kgrpo_policy* self, kgrpo_forward_context* context, const kgrpo_tensor* dlogprobs,
                                     kgrpo_gradient_sink sink);

  /* The table of a further interface that this instance offers; NULL for an id that it does not offer. Static. NULL for
   * a policy without any. [any thread] */
  const void* (*get_extension)(const kgrpo_policy* self, kgrpo_str id);
} kgrpo_policy_interface;

#define KGRPO_POLICY_INTERFACE_SIZE_1 KGRPO_SIZEOF_THROUGH(kgrpo_policy_interface, get_extension)
#endif
