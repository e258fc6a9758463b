/* Where each member of each struct of the plugin ABI lies, on machines of 64-bit pointers. Written by
 * scripts/make_abi_layout.py; a plugin that was built years ago relies on each assertion. */
/* clang-format off */
#include <stddef.h>

#include <kgrpo/abi.h>
#include <kgrpo/coder.h>
#include <kgrpo/coder_answer.h>
#include <kgrpo/evaluation.h>
#include <kgrpo/evaluator.h>
#include <kgrpo/host.h>
#include <kgrpo/observer.h>
#include <kgrpo/options.h>
#include <kgrpo/policy.h>
#include <kgrpo/problem.h>
#include <kgrpo/reward.h>
#include <kgrpo/tensor.h>
#include <kgrpo/trainer.h>

#define AT(type, member, offset, size)                                                   \
  _Static_assert(offsetof(type, member) == (offset), #type "." #member " has moved");     \
  _Static_assert(sizeof(((type*)0)->member) == (size), #type "." #member " has another size")
AT(kgrpo_str, data, 0, 8); AT(kgrpo_str, size, 8, 8);
AT(kgrpo_error, struct_size, 0, 4); AT(kgrpo_error, code, 4, 4); AT(kgrpo_error, message, 8, 16);
AT(kgrpo_error, release, 24, 8);
AT(kgrpo_metric, name, 0, 16); AT(kgrpo_metric, value, 16, 8); AT(kgrpo_metric, low, 24, 8);
AT(kgrpo_metric, high, 32, 8);
AT(kgrpo_metric_sink, context, 0, 8); AT(kgrpo_metric_sink, add, 8, 8);
AT(kgrpo_text_sink, context, 0, 8); AT(kgrpo_text_sink, put, 8, 8);
AT(kgrpo_host, context, 0, 8); AT(kgrpo_host, get_interface, 8, 8);
AT(kgrpo_plugin, struct_size, 0, 4); AT(kgrpo_plugin, abi_major, 4, 4); AT(kgrpo_plugin, abi_minor, 8, 4);
AT(kgrpo_plugin, name, 16, 16); AT(kgrpo_plugin, version, 32, 16); AT(kgrpo_plugin, summary, 48, 16);
AT(kgrpo_plugin, get_interface, 64, 8);
AT(kgrpo_coder_request, struct_size, 0, 4); AT(kgrpo_coder_request, problem, 8, 8);
AT(kgrpo_coder_request, code_a, 16, 16); AT(kgrpo_coder_request, code_b, 32, 16);
AT(kgrpo_coder_request, last_suggestion, 48, 16); AT(kgrpo_coder_request, suggestion, 64, 16);
AT(kgrpo_coder_request, current, 80, 8); AT(kgrpo_coder_request, seed, 88, 8);
AT(kgrpo_coder_request, truncated, 96, 4);
AT(kgrpo_coder_spending, struct_size, 0, 4); AT(kgrpo_coder_spending, cost, 8, 8);
AT(kgrpo_coder_spending, lost_cost, 16, 8);
AT(kgrpo_coder_done, context, 0, 8); AT(kgrpo_coder_done, done, 8, 8);
AT(kgrpo_coder_interface, struct_size, 0, 4); AT(kgrpo_coder_interface, options_schema, 8, 8);
AT(kgrpo_coder_interface, create, 16, 8); AT(kgrpo_coder_interface, destroy, 24, 8);
AT(kgrpo_coder_interface, implement, 32, 8); AT(kgrpo_coder_interface, cancel, 40, 8);
AT(kgrpo_coder_interface, suggestions, 48, 8); AT(kgrpo_coder_interface, describe_request, 56, 8);
AT(kgrpo_coder_interface, describe, 64, 8); AT(kgrpo_coder_interface, spending, 72, 8);
AT(kgrpo_coder_interface, get_extension, 80, 8);
AT(kgrpo_coder_answer, struct_size, 0, 4); AT(kgrpo_coder_answer, outcome, 4, 4); AT(kgrpo_coder_answer, source, 8, 16);
AT(kgrpo_coder_answer, summary, 24, 16); AT(kgrpo_coder_answer, message, 40, 16); AT(kgrpo_coder_answer, text, 56, 16);
AT(kgrpo_coder_answer, prompt_tokens, 72, 8); AT(kgrpo_coder_answer, completion_tokens, 80, 8);
AT(kgrpo_coder_answer, cost, 88, 8); AT(kgrpo_coder_answer, seconds, 96, 8); AT(kgrpo_coder_answer, attempts, 104, 4);
AT(kgrpo_coder_answer, reused, 108, 4); AT(kgrpo_coder_answer, estimated, 112, 4);
AT(kgrpo_remark, struct_size, 0, 4); AT(kgrpo_remark, line, 4, 4); AT(kgrpo_remark, group, 8, 16);
AT(kgrpo_remark, label, 24, 16); AT(kgrpo_remark, text, 40, 16); AT(kgrpo_remark, share, 56, 8);
AT(kgrpo_evaluation, struct_size, 0, 4); AT(kgrpo_evaluation, compiled, 4, 4); AT(kgrpo_evaluation, correct, 8, 4);
AT(kgrpo_evaluation, verdict, 16, 16); AT(kgrpo_evaluation, seconds, 32, 8); AT(kgrpo_evaluation, seconds_low, 40, 8);
AT(kgrpo_evaluation, seconds_high, 48, 8); AT(kgrpo_evaluation, modelled, 56, 4);
AT(kgrpo_evaluation, time_source, 64, 16); AT(kgrpo_evaluation, diagnosis, 80, 16);
AT(kgrpo_evaluation, speedup, 96, 8); AT(kgrpo_evaluation, speedup_low, 104, 8);
AT(kgrpo_evaluation, speedup_high, 112, 8); AT(kgrpo_evaluation, metrics, 120, 8);
AT(kgrpo_evaluation, metric_count, 128, 8); AT(kgrpo_evaluation, remarks, 136, 8);
AT(kgrpo_evaluation, remark_count, 144, 8);
AT(kgrpo_evaluation_sink, context, 0, 8); AT(kgrpo_evaluation_sink, put, 8, 8);
AT(kgrpo_evaluate_request, struct_size, 0, 4); AT(kgrpo_evaluate_request, source, 8, 16);
AT(kgrpo_evaluate_request, seed, 24, 8); AT(kgrpo_evaluate_request, thorough, 32, 4);
AT(kgrpo_evaluate_request, show_hidden, 36, 4); AT(kgrpo_evaluate_request, reference, 40, 4);
AT(kgrpo_evaluator_interface, struct_size, 0, 4); AT(kgrpo_evaluator_interface, options_schema, 8, 8);
AT(kgrpo_evaluator_interface, create, 16, 8); AT(kgrpo_evaluator_interface, destroy, 24, 8);
AT(kgrpo_evaluator_interface, open_problem, 32, 8); AT(kgrpo_evaluator_interface, close_problem, 40, 8);
AT(kgrpo_evaluator_interface, problem_info, 48, 8); AT(kgrpo_evaluator_interface, evaluate, 56, 8);
AT(kgrpo_evaluator_interface, describe, 64, 8); AT(kgrpo_evaluator_interface, get_extension, 72, 8);
AT(kgrpo_metric_declaration, struct_size, 0, 4); AT(kgrpo_metric_declaration, kind, 4, 4);
AT(kgrpo_metric_declaration, name, 8, 16); AT(kgrpo_metric_declaration, label, 24, 16);
AT(kgrpo_metric_declaration, unit, 40, 16); AT(kgrpo_metric_declaration, group, 56, 16);
AT(kgrpo_metric_declaration, direction, 72, 4); AT(kgrpo_metric_declaration, combination, 76, 4);
AT(kgrpo_metric_declaration_sink, context, 0, 8); AT(kgrpo_metric_declaration_sink, put, 8, 8);
AT(kgrpo_host_interface, struct_size, 0, 4); AT(kgrpo_host_interface, make_error, 8, 8);
AT(kgrpo_host_interface, log, 16, 8); AT(kgrpo_host_interface, declare_metric, 24, 8);
AT(kgrpo_host_interface, list_metrics, 32, 8); AT(kgrpo_host_interface, add_metric, 40, 8);
AT(kgrpo_host_interface, cancelled, 48, 8); AT(kgrpo_host_interface, request_stop, 56, 8);
AT(kgrpo_host_interface, artifact_directory, 64, 8); AT(kgrpo_host_interface, cache_directory, 72, 8);
AT(kgrpo_host_interface, lock_device, 80, 8); AT(kgrpo_host_interface, unlock_device, 88, 8);
AT(kgrpo_host_interface, random, 96, 8); AT(kgrpo_host_interface, host_version, 104, 8);
AT(kgrpo_host_interface, plugin_directory, 112, 8);
AT(kgrpo_run_info, struct_size, 0, 4); AT(kgrpo_run_info, name, 8, 16); AT(kgrpo_run_info, directory, 24, 16);
AT(kgrpo_run_info, pipeline, 40, 16); AT(kgrpo_run_info, seed, 56, 8); AT(kgrpo_run_info, steps, 64, 8);
AT(kgrpo_run_info, done, 72, 8); AT(kgrpo_run_info, resumed, 80, 4);
AT(kgrpo_round_event, struct_size, 0, 4); AT(kgrpo_round_event, heldout, 4, 4); AT(kgrpo_round_event, step, 8, 8);
AT(kgrpo_round_event, trajectory, 16, 8); AT(kgrpo_round_event, round, 24, 4); AT(kgrpo_round_event, rounds, 28, 4);
AT(kgrpo_round_event, problem, 32, 16); AT(kgrpo_round_event, suggestion, 48, 16); AT(kgrpo_round_event, answer, 64, 8);
AT(kgrpo_round_event, evaluation, 72, 8); AT(kgrpo_round_event, reward, 80, 8); AT(kgrpo_round_event, returned, 88, 8);
AT(kgrpo_round_event, advantage, 96, 8);
AT(kgrpo_metric_row, metrics, 0, 8); AT(kgrpo_metric_row, count, 8, 8);
AT(kgrpo_step_event, struct_size, 0, 4); AT(kgrpo_step_event, stage, 4, 4); AT(kgrpo_step_event, step, 8, 8);
AT(kgrpo_step_event, trainer, 16, 16); AT(kgrpo_step_event, finished_at, 32, 8); AT(kgrpo_step_event, metrics, 40, 8);
AT(kgrpo_step_event, metric_count, 48, 8); AT(kgrpo_step_event, optimizer_steps, 56, 8);
AT(kgrpo_step_event, optimizer_step_count, 64, 8);
AT(kgrpo_checkpoint_event, struct_size, 0, 4); AT(kgrpo_checkpoint_event, step, 8, 8);
AT(kgrpo_checkpoint_event, directory, 16, 16); AT(kgrpo_checkpoint_event, seconds, 32, 8);
AT(kgrpo_checkpoint_event, finished_at, 40, 8);
AT(kgrpo_observer_interface, struct_size, 0, 4); AT(kgrpo_observer_interface, options_schema, 8, 8);
AT(kgrpo_observer_interface, create, 16, 8); AT(kgrpo_observer_interface, destroy, 24, 8);
AT(kgrpo_observer_interface, begin, 32, 8); AT(kgrpo_observer_interface, round, 40, 8);
AT(kgrpo_observer_interface, step, 48, 8); AT(kgrpo_observer_interface, checkpoint, 56, 8);
AT(kgrpo_observer_interface, end, 64, 8); AT(kgrpo_observer_interface, get_extension, 72, 8);
AT(kgrpo_options_interface, struct_size, 0, 4); AT(kgrpo_options_interface, number, 8, 8);
AT(kgrpo_options_interface, integer, 16, 8); AT(kgrpo_options_interface, flag, 24, 8);
AT(kgrpo_options_interface, text, 32, 8); AT(kgrpo_options_interface, count, 40, 8);
AT(kgrpo_token_sink, context, 0, 8); AT(kgrpo_token_sink, put, 8, 8);
AT(kgrpo_message, role, 0, 16); AT(kgrpo_message, content, 16, 16); AT(kgrpo_message, members, 32, 16);
AT(kgrpo_policy_info, struct_size, 0, 4); AT(kgrpo_policy_info, architecture, 8, 16);
AT(kgrpo_policy_info, device, 24, 16); AT(kgrpo_policy_info, parameter_count, 40, 8);
AT(kgrpo_policy_info, vocabulary_size, 48, 4); AT(kgrpo_policy_info, context_length, 52, 4);
AT(kgrpo_policy_info, end_ids, 56, 8); AT(kgrpo_policy_info, end_id_count, 64, 8); AT(kgrpo_policy_info, stream, 72, 8);
AT(kgrpo_policy_info, prefix_ids, 80, 8); AT(kgrpo_policy_info, prefix_id_count, 88, 8);
AT(kgrpo_policy_info, reads_chat_arguments, 96, 4); AT(kgrpo_policy_info, reproducible, 100, 4);
AT(kgrpo_chat_options, struct_size, 0, 4); AT(kgrpo_chat_options, add_generation_prompt, 4, 4);
AT(kgrpo_chat_options, enable_thinking, 8, 4); AT(kgrpo_chat_options, arguments, 16, 16);
AT(kgrpo_sampling, struct_size, 0, 4); AT(kgrpo_sampling, max_new_tokens, 4, 4); AT(kgrpo_sampling, temperature, 8, 8);
AT(kgrpo_sampling, top_k, 16, 4); AT(kgrpo_sampling, top_p, 24, 8); AT(kgrpo_sampling, min_p, 32, 8);
AT(kgrpo_completion, struct_size, 0, 4); AT(kgrpo_completion, finish_reason, 4, 4); AT(kgrpo_completion, ids, 8, 8);
AT(kgrpo_completion, logprobs, 16, 8); AT(kgrpo_completion, size, 24, 8); AT(kgrpo_completion, text, 32, 16);
AT(kgrpo_completion_done, context, 0, 8); AT(kgrpo_completion_done, done, 8, 8);
AT(kgrpo_generate_request, struct_size, 0, 4); AT(kgrpo_generate_request, prompt_ids, 8, 8);
AT(kgrpo_generate_request, prompt_size, 16, 8); AT(kgrpo_generate_request, seed, 24, 8);
AT(kgrpo_generate_request, sampling, 32, 8); AT(kgrpo_generate_request, done, 40, 16);
AT(kgrpo_sequence, prompt_ids, 0, 8); AT(kgrpo_sequence, prompt_size, 8, 8); AT(kgrpo_sequence, completion_ids, 16, 8);
AT(kgrpo_sequence, completion_size, 24, 8);
AT(kgrpo_forward_request, struct_size, 0, 4); AT(kgrpo_forward_request, sequences, 8, 8);
AT(kgrpo_forward_request, sequence_count, 16, 8); AT(kgrpo_forward_request, copy, 24, 4);
AT(kgrpo_forward_request, temperature, 32, 8); AT(kgrpo_forward_request, need_gradient, 40, 4);
AT(kgrpo_parameter, struct_size, 0, 4); AT(kgrpo_parameter, name, 8, 16); AT(kgrpo_parameter, value, 24, 8);
AT(kgrpo_parameter, gradient, 32, 8);
AT(kgrpo_parameter_group, struct_size, 0, 4); AT(kgrpo_parameter_group, name, 8, 16);
AT(kgrpo_parameter_group, trainable, 24, 4); AT(kgrpo_parameter_group, decay, 28, 4);
AT(kgrpo_parameter_group, parameters, 32, 8); AT(kgrpo_parameter_group, parameter_count, 40, 8);
AT(kgrpo_parameter_group, flat_value, 48, 8); AT(kgrpo_parameter_group, flat_gradient, 56, 8);
AT(kgrpo_gradient_sink, context, 0, 8); AT(kgrpo_gradient_sink, ready, 8, 8);
AT(kgrpo_policy_interface, struct_size, 0, 4); AT(kgrpo_policy_interface, options_schema, 8, 8);
AT(kgrpo_policy_interface, create, 16, 8); AT(kgrpo_policy_interface, destroy, 24, 8);
AT(kgrpo_policy_interface, info, 32, 8); AT(kgrpo_policy_interface, encode_chat, 40, 8);
AT(kgrpo_policy_interface, render_chat, 48, 8); AT(kgrpo_policy_interface, encode, 56, 8);
AT(kgrpo_policy_interface, decode, 64, 8); AT(kgrpo_policy_interface, generate, 72, 8);
AT(kgrpo_policy_interface, cancel, 80, 8); AT(kgrpo_policy_interface, forward, 88, 8);
AT(kgrpo_policy_interface, backward, 96, 8); AT(kgrpo_policy_interface, release_context, 104, 8);
AT(kgrpo_policy_interface, parameters, 112, 8); AT(kgrpo_policy_interface, zero_gradients, 120, 8);
AT(kgrpo_policy_interface, freeze_reference, 128, 8); AT(kgrpo_policy_interface, save, 136, 8);
AT(kgrpo_policy_interface, load, 144, 8); AT(kgrpo_policy_interface, backward_in_pieces, 152, 8);
AT(kgrpo_policy_interface, get_extension, 160, 8);
AT(kgrpo_problem_info, struct_size, 0, 4); AT(kgrpo_problem_info, name, 8, 16); AT(kgrpo_problem_info, title, 24, 16);
AT(kgrpo_problem_info, family, 40, 16); AT(kgrpo_problem_info, split, 56, 16); AT(kgrpo_problem_info, task, 72, 16);
AT(kgrpo_problem_info, signature, 88, 16); AT(kgrpo_problem_info, source, 104, 16);
AT(kgrpo_problem_info, traits, 120, 8); AT(kgrpo_problem_info, trait_count, 128, 8);
AT(kgrpo_problem_info, refused, 136, 16); AT(kgrpo_problem_info, flags, 152, 8);
AT(kgrpo_problem_info, flag_count, 160, 8);
AT(kgrpo_reward_request, struct_size, 0, 4); AT(kgrpo_reward_request, baseline, 8, 8);
AT(kgrpo_reward_request, answer, 16, 8); AT(kgrpo_reward_request, candidate, 24, 8);
AT(kgrpo_reward_request, current, 32, 8); AT(kgrpo_reward_request, unchanged, 40, 4);
AT(kgrpo_reward_request, round, 44, 4); AT(kgrpo_reward_request, rounds, 48, 4);
AT(kgrpo_reward_request, history, 56, 8); AT(kgrpo_reward_request, suggestion, 64, 16);
AT(kgrpo_reward_request, suggestion_tokens, 80, 8);
AT(kgrpo_reward_interface, struct_size, 0, 4); AT(kgrpo_reward_interface, options_schema, 8, 8);
AT(kgrpo_reward_interface, create, 16, 8); AT(kgrpo_reward_interface, destroy, 24, 8);
AT(kgrpo_reward_interface, score, 32, 8); AT(kgrpo_reward_interface, idle, 40, 8);
AT(kgrpo_reward_interface, get_extension, 48, 8);
AT(kgrpo_tensor, data, 0, 8); AT(kgrpo_tensor, device.type, 8, 4); AT(kgrpo_tensor, device.id, 12, 4);
AT(kgrpo_tensor, ndim, 16, 4); AT(kgrpo_tensor, dtype.code, 20, 1); AT(kgrpo_tensor, dtype.bits, 21, 1);
AT(kgrpo_tensor, dtype.lanes, 22, 2); AT(kgrpo_tensor, shape, 24, 8); AT(kgrpo_tensor, strides, 32, 8);
AT(kgrpo_tensor, byte_offset, 40, 8);
AT(kgrpo_writer, context, 0, 8); AT(kgrpo_writer, write, 8, 8);
AT(kgrpo_reader, context, 0, 8); AT(kgrpo_reader, read, 8, 8);
AT(kgrpo_sample, struct_size, 0, 4); AT(kgrpo_sample, prompt_ids, 8, 8); AT(kgrpo_sample, prompt_size, 16, 8);
AT(kgrpo_sample, completion_ids, 24, 8); AT(kgrpo_sample, logprobs, 32, 8); AT(kgrpo_sample, completion_size, 40, 8);
AT(kgrpo_sample, reward, 48, 8); AT(kgrpo_sample, idle_reward, 56, 8); AT(kgrpo_sample, trajectory, 64, 8);
AT(kgrpo_sample, round, 72, 4); AT(kgrpo_sample, rounds, 76, 4); AT(kgrpo_sample, problem, 80, 4);
AT(kgrpo_sample, truncated, 84, 4);
AT(kgrpo_trainer_plan, struct_size, 0, 4); AT(kgrpo_trainer_plan, steps, 8, 8);
AT(kgrpo_trainer_plan, temperature, 16, 8); AT(kgrpo_trainer_plan, max_completion_size, 24, 4);
AT(kgrpo_trainer_plan, trajectories, 32, 8); AT(kgrpo_trainer_plan, trajectories_per_problem, 40, 8);
AT(kgrpo_trainer_plan, problems, 48, 8); AT(kgrpo_trainer_plan, rounds, 56, 8);
AT(kgrpo_trainer_plan, max_staleness, 64, 4); AT(kgrpo_trainer_plan, cuts_support, 68, 4);
AT(kgrpo_sample_outcome, struct_size, 0, 4); AT(kgrpo_sample_outcome, sample, 8, 8);
AT(kgrpo_sample_outcome, returned, 16, 8); AT(kgrpo_sample_outcome, advantage, 24, 8);
AT(kgrpo_update_sink, context, 0, 8); AT(kgrpo_update_sink, step, 8, 8); AT(kgrpo_update_sink, optimizer_step, 16, 8);
AT(kgrpo_update_sink, sample, 24, 8);
AT(kgrpo_trainer_interface, struct_size, 0, 4); AT(kgrpo_trainer_interface, options_schema, 8, 8);
AT(kgrpo_trainer_interface, create, 16, 8); AT(kgrpo_trainer_interface, destroy, 24, 8);
AT(kgrpo_trainer_interface, source, 32, 8); AT(kgrpo_trainer_interface, needs_reference, 40, 8);
AT(kgrpo_trainer_interface, begin, 48, 8); AT(kgrpo_trainer_interface, update, 56, 8);
AT(kgrpo_trainer_interface, save_state, 64, 8); AT(kgrpo_trainer_interface, load_state, 72, 8);
AT(kgrpo_trainer_interface, check_plan, 80, 8); AT(kgrpo_trainer_interface, get_extension, 88, 8);
