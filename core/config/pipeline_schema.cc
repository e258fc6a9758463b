#include "config/pipeline_schema.h"

#include "base/default_plugins.h"

namespace kgrpo {
namespace {

// Defaults equal those of the structs in pipeline.h; a test compares them.
constexpr const char kSchema[] = R"json({
"$schema": "http://json-schema.org/draft-07/schema#",
"title": "a kgrpo pipeline",
"type": "object",
"additionalProperties": false,
"definitions": {
  "choice": {
    "type": "object",
    "additionalProperties": false,
    "required": ["plugin"],
    "properties": {
      "plugin": {"type": "string", "minLength": 1, "description": "A plugin's name, searched in the plugin folders, or the path of its library."},
      "options": {"type": "object", "default": {}, "description": "The plugin's own options; `kgrpo-host plugins describe NAME` lists them."}
    }
  },
  "stage": {
    "type": "object",
    "additionalProperties": false,
    "required": ["plugin"],
    "properties": {
      "plugin": {"type": "string", "minLength": 1, "description": "A plugin's name, searched in the plugin folders, or the path of its library."},
      "options": {"type": "object", "default": {}, "description": "The plugin's own options; `kgrpo-host plugins describe NAME` lists them."},
      "steps": {"type": "integer", "minimum": 1, "maximum": 10000000, "description": "Updates of this stage; loop.max_steps where absent."},
      "suggestions": {"enum": ["policy", "uniform"], "default": "policy", "description": "Where the suggestions come from while this stage collects trajectories: the policy's own samples, or the coder's list, drawn uniformly."},
      "episodes": {"type": "integer", "minimum": 0, "maximum": 1000000, "default": 0, "description": "With `suggestions: uniform`: trajectories collected once, when the stage starts."},
      "demonstrations_per_step": {"type": "integer", "minimum": 1, "maximum": 1000000, "default": 32, "description": "How many of the demonstrated rounds each update gets."},
      "demonstrations": {
        "type": "object",
        "additionalProperties": false,
        "default": {},
        "description": "For a trainer that imitates: rounds of other runs, in place of collected ones.",
        "properties": {
          "from": {"$ref": "#/definitions/folders", "default": [], "description": "Folders of runs of any purpose: training, `eval policy`, `optimize`; `output_dir`: this run's earlier stages."}
        },
        "x-removed": {
          "select": {"const": "best_of_group", "description": "at each recorded kernel the suggestion that led to the fastest one is imitated; imitating all that gained had a lower mean reward and slower kernels (docs/reuse.md)"},
          "min_gain": {"const": 1.05, "description": "suggestions are imitated that made their kernel at least 1.05 times as fast; with other bounds from 0 to 1.2 no kernel was faster beyond noise (docs/reuse.md)"}
        }
      }
    }
  },
  "folders": {"type": "array", "items": {"type": "string", "minLength": 1}}
},
"properties": {
  "name": {"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]*$", "description": "The run's name. Default: the file's name without its ending."},
  "seed": {"type": "integer", "minimum": 0, "default": 0, "description": "Everything random in the run follows from it."},
  "policy": {"$ref": "#/definitions/choice", "description": "The language model that learns to suggest."},
  "coder": {"$ref": "#/definitions/choice", "description": "Writes the kernel that a suggestion describes."},
  "evaluator": {"$ref": "#/definitions/choice", "description": "Compiles, checks and times kernels."},
  "reward": {"$ref": "#/definitions/choice", "description": "Turns a judged kernel into a number."},
  "trainer": {
    "description": "Updates the policy: one trainer, or a list of stages that follow each other.",
    "anyOf": [{"$ref": "#/definitions/stage"}, {"type": "array", "minItems": 1, "items": {"$ref": "#/definitions/stage"}}]
  },
  "problems": {
    "type": "object",
    "additionalProperties": false,
    "default": {},
    "description": "The kernels to optimise: folders, or patterns with * and ?.",
    "properties": {
      "train": {"$ref": "#/definitions/folders", "default": [], "description": "Trained on. A folder that `heldout` names without a pattern is left out of patterns here, and the other way round."},
      "heldout": {"$ref": "#/definitions/folders", "default": [], "description": "Never trained on: what evaluation uses."},
      "skip_unusable": {"type": "boolean", "default": false, "description": "Leave out, with a note, problems that cannot be used here: refused by an import, without a reference kernel, or with one that is not correct. Otherwise such a problem ends the run before its first step."}
    }
  },
  "loop": {
    "type": "object",
    "additionalProperties": false,
    "default": {},
    "description": "How much is collected for each update.",
    "properties": {
      "max_steps": {"type": "integer", "minimum": 1, "maximum": 10000000, "default": 100, "description": "Updates of a stage that does not say its own `steps`."},
      "batch_size": {"type": "integer", "minimum": 1, "maximum": 1000000, "default": 16, "description": "Trajectories collected for each update."},
      "rounds": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 4, "description": "Refinement rounds of a trajectory."},
      "trajectories_per_problem": {"type": "integer", "minimum": 1, "maximum": 1000000, "default": 1, "description": "Trajectories that share a problem within a step; divides batch_size."},
      "max_staleness": {"type": "integer", "minimum": 0, "maximum": 1, "default": 0, "description": "1: a step's first rounds begin before the policy has learned from the step before, so that slow coders, the policy and the trainer work at the same time; 0: a step begins after that. One rank only."},
      "generation_batch": {"type": "integer", "minimum": 0, "maximum": 1000000, "default": 16, "description": "Suggestions that the policy writes at the same time, at most; 0: all of a step. It changes no result."},
      "workers": {"type": "integer", "minimum": 0, "maximum": 4096, "default": 0, "description": "Threads that judge kernels; 0: as many as there are cores."},
      "sampling": {
        "type": "object",
        "additionalProperties": false,
        "default": {},
        "description": "How suggestions are sampled. Applied in this order: temperature, top_k, top_p, min_p.",
        "properties": {
          "max_new_tokens": {"type": "integer", "minimum": 1, "maximum": 1048576, "default": 256, "description": "Tokens of a suggestion, at most."},
          "temperature": {"type": "number", "exclusiveMinimum": 0, "maximum": 100, "default": 1.0, "description": "Logits are divided by it."},
          "top_k": {"type": "integer", "minimum": 0, "maximum": 4294967295, "default": 0, "description": "Only the k likeliest tokens; 0: all."},
          "top_p": {"type": "number", "exclusiveMinimum": 0, "maximum": 1, "default": 1.0, "description": "Only the likeliest tokens that together reach this probability; 1: all."},
          "min_p": {"type": "number", "minimum": 0, "maximum": 1, "default": 0.0, "description": "Only tokens at least this likely relative to the likeliest; 0: all."}
        }
      },
      "on_coder_failure": {"enum": ["drop", "punish"], "default": "drop", "description": "A trajectory whose coder failed (refused, truncated, no code, no answer): `drop` it, or `punish` the suggestion like a kernel that does not compile."},
      "advance": {"enum": ["always", "correct"], "default": "always", "description": "Which kernels of the coder become the current one: `always` every one, so that a broken one is the next round's to repair; `correct`: only correct ones."},
      "hang_seconds": {"type": "integer", "minimum": 0, "maximum": 4294967295, "default": 600, "description": "With several ranks: seconds that one may spend in a plugin's call while others wait, before the run ends; 0: no limit."},
      "replay": {
        "type": "object",
        "additionalProperties": false,
        "default": {},
        "description": "Recorded answers in place of the coder and the evaluator, in training.",
        "properties": {
          "from": {"$ref": "#/definitions/folders", "default": [], "description": "Folders of runs whose rounds are replayed; none: off."},
          "unrecorded": {"enum": ["ask", "refuse"], "default": "ask", "description": "A suggestion that was not recorded for that kernel: `ask` the coder, or `refuse` it as a coder's failure."}
        }
      }
    },
    "x-removed": {
      "fresh_inputs": {"const": false, "description": "all kernels of a problem are evaluated on the same secret inputs within a run, so that their times compare and repeats are cached; another `seed` draws others"}
    }
  },
  "prompt": {
    "type": "object",
    "additionalProperties": false,
    "default": {},
    "description": "What the policy reads: mustache templates over the trajectory's state; docs/prompts.md lists the variables.",
    "properties": {
      "system": {"type": "string", "default": "", "description": "The system message; empty: none is sent (the model's chat template may have its own)."},
      "user": {"type": "string", "minLength": 1, "description": "The user message.", "default": "Suggest the one change that would make this CUDA kernel fastest. Answer with the change alone, in one or two sentences, without code.\n\nTask: {{problem.task}}\n\nPrevious kernel:\n```cuda\n{{code_a}}\n```\n\nCurrent kernel:\n```cuda\n{{code_b}}\n```\n{{#last_suggestion}}\nThe last suggestion was: {{last_suggestion}}\n{{/last_suggestion}}{{#current.diagnosis}}\nWhat was found about the current kernel: {{current.diagnosis}}\n{{/current.diagnosis}}"},
      "enable_thinking": {"type": ["boolean", "null"], "default": null, "description": "The thinking switch of chat templates that have one; unset: as the template has it."},
      "max_tokens": {"type": "integer", "minimum": 0, "maximum": 10000000, "default": 0, "description": "Tokens of a prompt, at most: the oldest rounds of `history` are left out until it fits, then the slowest of `best`. 0: what the policy's context leaves beside sampling.max_new_tokens."}
    },
    "x-removed": {
      "best_rounds": {"const": 3, "description": "the list `best` has up to three rounds, fewer where a prompt would not fit"}
    }
  },
  "checkpoint": {
    "type": "object",
    "additionalProperties": false,
    "default": {},
    "description": "When the run's state is saved. One is always written at the end and when the run stops early.",
    "properties": {
      "every": {"type": "integer", "minimum": 1, "default": 10, "description": "Steps between checkpoints."},
      "keep_last": {"type": "integer", "minimum": 1, "maximum": 100000, "default": 2, "description": "The newest that are kept."},
      "keep_best": {"type": "integer", "minimum": 0, "maximum": 100000, "default": 1, "description": "Those kept for their mean reward: on held-out problems if checkpoint.every is a multiple of evaluation.every, else of the next step, less what its problems earn on average."},
      "final": {"enum": ["last", "best"], "default": "last", "description": "What final/ holds: the last policy, or that of the best kept checkpoint."}
    }
  },
  "evaluation": {
    "type": "object",
    "additionalProperties": false,
    "default": {},
    "description": "Held-out episodes while training.",
    "properties": {
      "every": {"type": "integer", "minimum": 0, "default": 0, "description": "Steps between evaluations; 0: none."},
      "episodes": {"type": "integer", "minimum": 1, "maximum": 1000000, "default": 4, "description": "Episodes of each held-out problem."},
      "at_start": {"type": "boolean", "default": false, "description": "Evaluate before the first step of each stage, too."},
      "greedy": {"type": "boolean", "default": false, "description": "Also play an episode of each problem at temperature 0."},
      "patience": {"type": "integer", "minimum": 0, "default": 0, "description": "End the last stage after so many evaluations in a row without a better reward; 0: never."}
    }
  },
  "controls": {
    "type": "object",
    "additionalProperties": false,
    "default": {},
    "description": "Experiments that must fail to learn: a check on what was learned. Off in every real run.",
    "properties": {
      "shuffle_prompts": {"type": "boolean", "default": false, "description": "Each trajectory is given the prompts of one that works on another problem."},
      "shuffle_rewards": {"type": "boolean", "default": false, "description": "Rewards are permuted among the samples of a step."}
    }
  },
  "observers": {
    "type": "array",
    "items": {"$ref": "#/definitions/choice"},
    "default": [{"plugin": ")json" KGRPO_DEFAULT_OBSERVER R"json("}, {"plugin": ")json" KGRPO_DEFAULT_SECOND_OBSERVER
                                 R"json("}],
    "description": "Record what happens in the run, step by step: TensorBoard, metrics.jsonl."
  },
  "output_dir": {"type": "string", "minLength": 1, "description": "The run folder. Default: runs/ and the name."}
}
})json";

}  // namespace

const Schema& PipelineSchema() {
  static const Schema schema = Schema::parse(kSchema);
  return schema;
}

}  // namespace kgrpo
