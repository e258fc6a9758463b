/* evaluator_c - judges C functions on the CPU, in plain C11 and POSIX: compiles one, compares its output with the
 * reference's on random inputs, and times it. A problem is a folder with a reference.c. The whole of a plugin.
 *
 * A candidate runs in its own process with limits of time and memory, but without a sandbox, and its process holds the
 * clock: use it with coders that you trust. */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <fcntl.h>
#include <kgrpo/evaluator.h>
#include <kgrpo/host.h>
#include <kgrpo/options.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Compiled with each kernel: computes once from inputs of a seed, writes the results, and times 21 calls: their median,
 * and the 6th and 16th, a 97% interval of it. */
static const char main_text[] =
    "#include <stdio.h>\n"
    "#include <stdlib.h>\n"
    "#include <time.h>\n"
    "void kernel(const float* x, float* y, int n);\n"
    "static int order(const void* a, const void* b) {\n"
    "  return (*(double*)a > *(double*)b) - (*(double*)a < *(double*)b);\n"
    "}\n"
    "int main(int argc, char** argv) {\n"
    "  const int n = atoi(argv[1]);\n"
    "  unsigned long long state = strtoull(argv[2], NULL, 10);\n"
    "  float *x = malloc(n * sizeof *x), *y = malloc(n * sizeof *y);\n"
    "  for (int i = 0; i < n; ++i) {\n"
    "    state = state * 6364136223846793005ull + 1442695040888963407ull;\n"
    "    x[i] = (float)(state >> 40) / (1 << 23) - 1;\n"
    "    y[i] = 1e30f;\n"
    "  }\n"
    "  kernel(x, y, n);\n"
    "  fwrite(y, sizeof *y, n, stdout);\n"
    "  double seconds[21];\n"
    "  for (int i = 0; i < 21; ++i) {\n"
    "    struct timespec a, b;\n"
    "    clock_gettime(CLOCK_MONOTONIC, &a);\n"
    "    kernel(x, y, n);\n"
    "    clock_gettime(CLOCK_MONOTONIC, &b);\n"
    "    seconds[i] = (b.tv_sec - a.tv_sec) + 1e-9 * (b.tv_nsec - a.tv_nsec);\n"
    "  }\n"
    "  qsort(seconds, 21, sizeof *seconds, order);\n"
    "  fprintf(stderr, \"%.9g %.9g %.9g\\n\", seconds[10], seconds[5], seconds[15]);\n"
    "  return argc != 3;\n"
    "}\n";
static const int sizes[] = {1, 1000, 1 << 16}; /* the last is timed */
enum { SIZES = sizeof sizes / sizeof sizes[0] };

/* The instance: what create makes and the other functions get back. The type is ours; the host has pointers only. */
struct kgrpo_evaluator {
  const kgrpo_host* host;
  const kgrpo_host_interface* api; /* errors, the device lock */
  char compiler[256];
  double seconds; /* how long a kernel's process may take */
};

struct kgrpo_problem {
  kgrpo_problem_info info;
  char *name, *source; /* info borrows them */
};

static kgrpo_str text_of(const char* text) {
  return (kgrpo_str){text, strlen(text)};
}

/* An error for the caller: `what`, and the system's reason `why` unless it is empty. */
static kgrpo_error* fail(const kgrpo_evaluator* self, uint32_t code, const char* what, const char* why) {
  char message[2600];
  snprintf(message, sizeof message, "%s%s%s", what, *why != 0 ? ": " : "", why);
  return self->api->make_error(self->host->context, code, text_of(message));
}

/* Files. */

/* `folder`/`name` in `path`, of PATH_SIZE characters. */
enum { PATH_SIZE = 4096 };
static void join(char* path, const char* folder, const char* name) {
  snprintf(path, PATH_SIZE, "%s/%s", folder, name);
}

/* Returns nonzero if the whole text was written. */
static int write_file(const char* folder, const char* name, kgrpo_str text) {
  char path[PATH_SIZE];
  join(path, folder, name);
  FILE* file = fopen(path, "wb");
  if (file == NULL) return 0;
  const size_t written = fwrite(text.data, 1, text.size, file);
  return (fclose(file) == 0) & (written == text.size);
}

/* A file's bytes and a zero behind them, which the caller frees; NULL where it cannot be read. */
static char* read_file(const char* folder, const char* name, size_t* size) {
  char path[PATH_SIZE];
  join(path, folder, name);
  FILE* file = fopen(path, "rb");
  if (file == NULL) return NULL;
  char* bytes = NULL;
  long end = -1;
  if (fseek(file, 0, SEEK_END) == 0 && (end = ftell(file)) >= 0 && fseek(file, 0, SEEK_SET) == 0)
    bytes = malloc((size_t)end + 1);
  if (bytes != NULL && fread(bytes, 1, (size_t)end, file) == (size_t)end) {
    bytes[end] = 0;
    *size = (size_t)end;
  } else {
    free(bytes);
    bytes = NULL;
  }
  fclose(file);
  return bytes;
}

/* Deletes a folder that `judge` made, and all files that it may hold. */
static void remove_folder(const char* folder) {
  static const char* const names[] = {"main.c",   "kernel.c", "reference.c", "candidate", "reference",
                                      "expected", "got",      "times",       "errors"};
  char path[PATH_SIZE];
  for (size_t i = 0; i < sizeof names / sizeof names[0]; ++i) {
    join(path, folder, names[i]);
    unlink(path);
  }
  rmdir(folder);
}

/* Processes. */

typedef enum outcome { FINE, EXITED, CRASHED, TIMED_OUT, NOT_STARTED } outcome;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Runs a program in `folder` to its end. Its standard output and standard error go to files there, of at most 64 MiB.
 * *detail: the exit code, the signal, or errno. */
static outcome run(char* const arguments[], const char* folder, const char* output, const char* errors, double seconds,
                   int* detail) {
  char output_path[PATH_SIZE], errors_path[PATH_SIZE];
  join(output_path, folder, output);
  join(errors_path, folder, errors);
  const double end = now() + seconds;
  const pid_t child = fork();
  if (child < 0) {
    *detail = errno;
    return NOT_STARTED;
  }
  if (child == 0) { /* only system calls from here to exec: other threads may have held locks */
    const struct rlimit memory = {(rlim_t)4 << 30, (rlim_t)4 << 30}, file = {64 << 20, 64 << 20}, core = {0, 0};
    setpgid(0, 0);
    setrlimit(RLIMIT_AS, &memory);
    setrlimit(RLIMIT_FSIZE, &file);
    setrlimit(RLIMIT_CORE, &core);
    dup2(open("/dev/null", O_RDONLY), 0);
    dup2(open(output_path, O_WRONLY | O_CREAT | O_TRUNC, 0600), 1);
    dup2(open(errors_path, O_WRONLY | O_CREAT | O_TRUNC, 0600), 2);
    execvp(arguments[0], arguments);
    _exit(127);
  }
  setpgid(child, child); /* parent and child both call it: either may run first */
  int status = 0, timed_out = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    timed_out = now() >= end;
    if (timed_out) break;
    nanosleep(&(struct timespec){0, 200000}, NULL);
  }
  kill(-child, SIGKILL); /* ends what the program left running */
  if (timed_out) {
    waitpid(child, &status, 0);
    return TIMED_OUT;
  }
  if (WIFSIGNALED(status)) {
    *detail = WTERMSIG(status);
    return CRASHED;
  }
  *detail = WEXITSTATUS(status);
  return *detail == 0 ? FINE : EXITED;
}

/* Builds `program` of `folder` from main.c and `source`. The compiler's words are in the file `errors`. */
static outcome compile(const kgrpo_evaluator* self, const char* folder, char* program, char* source, int* detail) {
  char paths[3][PATH_SIZE], compiler[sizeof self->compiler];
  char* names[] = {program, "main.c", source};
  for (int i = 0; i < 3; ++i) join(paths[i], folder, names[i]);
  strcpy(compiler, self->compiler);
  char* const arguments[] = {compiler, "-O2", "-o", paths[0], paths[1], paths[2], "-lm", NULL};
  return run(arguments, folder, "got", "errors", 60, detail);
}

/* Runs `program` of `folder` with a size and a seed. Nothing else of ours is timed or trains meanwhile. */
static kgrpo_error* compute(const kgrpo_evaluator* self, const char* folder, const char* program, int n, uint64_t seed,
                            const char* output, outcome* out, int* detail) {
  char path[PATH_SIZE], size_text[16], seed_text[32];
  join(path, folder, program);
  snprintf(size_text, sizeof size_text, "%d", n);
  snprintf(seed_text, sizeof seed_text, "%llu", (unsigned long long)seed);
  char* const arguments[] = {path, size_text, seed_text, NULL};
  kgrpo_error* error = self->api->lock_device(self->host->context, KGRPO_LITERAL("cpu"));
  if (error != NULL) return error;
  *out = run(arguments, folder, output, "times", self->seconds, detail);
  self->api->unlock_device(self->host->context, KGRPO_LITERAL("cpu"));
  return NULL;
}

/* Judging. */

typedef struct found {
  const char* verdict;
  char diagnosis[2048];
  double seconds, low, high;
} found;

/* Compares the files `expected` and `got` of `folder`; returns nonzero if they agree. */
static int agrees(const char* folder, int n, found* out) {
  size_t expected_size = 0, got_size = 0;
  char *expected = read_file(folder, "expected", &expected_size), *got = read_file(folder, "got", &got_size);
  int same = expected != NULL && got != NULL && expected_size == got_size && got_size == (size_t)n * sizeof(float);
  if (!same) snprintf(out->diagnosis, sizeof out->diagnosis, "the kernel must not print");
  for (int i = 0; same && i < n; ++i) {
    float y, reference;
    memcpy(&y, got + (size_t)i * sizeof y, sizeof y);
    memcpy(&reference, expected + (size_t)i * sizeof y, sizeof y);
    if (fabsf(y - reference) <= 1e-5F + 1e-4F * fabsf(reference)) continue; /* not for NaN */
    same = 0;
    snprintf(out->diagnosis, sizeof out->diagnosis, "n = %d: y[%d] is %g, the reference gives %g", n, i, (double)y,
             (double)reference);
  }
  free(expected);
  free(got);
  return same;
}

/* Judges one size: the verdict, and for the last size the time. */
static kgrpo_error* judge_size(const kgrpo_evaluator* self, const char* folder, int n, uint64_t seed, found* out) {
  outcome expected = FINE, got = FINE;
  int detail = 0;
  kgrpo_error* error = compute(self, folder, "reference", n, seed, "expected", &expected, &detail);
  if (error != NULL) return error;
  if (expected != FINE) return fail(self, KGRPO_ERROR_INVALID, "reference.c", "it crashes, or takes too long");
  error = compute(self, folder, "candidate", n, seed, "got", &got, &detail);
  if (error != NULL) return error;
  if (got == NOT_STARTED) return fail(self, KGRPO_ERROR_UNAVAILABLE, "cannot start the kernel", strerror(detail));
  if (got == TIMED_OUT || got == CRASHED || got == EXITED) {
    out->verdict = got == TIMED_OUT ? "timeout" : "crash";
    snprintf(out->diagnosis, sizeof out->diagnosis, "n = %d, %s %d", n,
             got == TIMED_OUT ? "seconds allowed:" : (got == CRASHED ? "signal" : "exit code"),
             got == TIMED_OUT ? (int)self->seconds : detail);
    return NULL;
  }
  if (!agrees(folder, n, out)) {
    out->verdict = "wrong";
    return NULL;
  }
  size_t size = 0;
  char* times = read_file(folder, "times", &size);
  if (times == NULL || sscanf(times, "%lf %lf %lf", &out->seconds, &out->low, &out->high) != 3) {
    out->verdict = "wrong";
    snprintf(out->diagnosis, sizeof out->diagnosis, "the kernel must not print");
  }
  free(times);
  return NULL;
}

/* Builds both programs in `folder` and compares them size by size. */
static kgrpo_error* judge_in(const kgrpo_evaluator* self, const char* folder, const kgrpo_problem* problem,
                             kgrpo_str source, uint64_t seed, found* out) {
  if (!write_file(folder, "main.c", text_of(main_text)) || !write_file(folder, "kernel.c", source) ||
      !write_file(folder, "reference.c", problem->info.source))
    return fail(self, KGRPO_ERROR_UNAVAILABLE, folder, "cannot write the sources");
  int detail = 0;
  char* const programs[][2] = {{"reference", "reference.c"}, {"candidate", "kernel.c"}};
  for (int i = 0; i < 2; ++i) {
    const outcome built = compile(self, folder, programs[i][0], programs[i][1], &detail);
    if (built == NOT_STARTED) return fail(self, KGRPO_ERROR_UNAVAILABLE, self->compiler, strerror(detail));
    if (built == EXITED && detail == 127)
      return fail(self, KGRPO_ERROR_UNAVAILABLE, self->compiler, "there is no such compiler on PATH");
    if (built == FINE) continue;
    size_t size = 0;
    char* words = read_file(folder, "errors", &size);
    snprintf(out->diagnosis, sizeof out->diagnosis, "%s",
             words != NULL && built == EXITED ? words : "the compiler was killed, or took more than 60 s");
    free(words);
    if (i == 0) return fail(self, KGRPO_ERROR_INVALID, "reference.c", out->diagnosis);
    out->verdict = "not_compiled";
    return NULL;
  }
  out->verdict = KGRPO_VERDICT_CORRECT;
  for (int i = 0; i < SIZES && strcmp(out->verdict, KGRPO_VERDICT_CORRECT) == 0; ++i) {
    kgrpo_error* error = judge_size(self, folder, sizes[i], seed, out);
    if (error != NULL) return error;
  }
  return NULL;
}

static kgrpo_error* judge(const kgrpo_evaluator* self, const kgrpo_problem* problem, kgrpo_str source, uint64_t seed,
                          found* out) {
  char folder[] = "/tmp/kgrpo-XXXXXX";
  if (mkdtemp(folder) == NULL) return fail(self, KGRPO_ERROR_UNAVAILABLE, folder, strerror(errno));
  kgrpo_error* error = judge_in(self, folder, problem, source, seed, out);
  remove_folder(folder);
  return error;
}

static void put(const found* what, kgrpo_evaluation_sink sink) {
  kgrpo_evaluation evaluation = {0};
  evaluation.struct_size = sizeof evaluation;
  evaluation.compiled = strcmp(what->verdict, "not_compiled") != 0;
  evaluation.correct = strcmp(what->verdict, KGRPO_VERDICT_CORRECT) == 0;
  evaluation.verdict = text_of(what->verdict);
  evaluation.diagnosis = text_of(what->diagnosis);
  evaluation.time_source = KGRPO_LITERAL("this CPU");
  if (evaluation.correct) {
    evaluation.seconds = what->seconds;
    evaluation.seconds_low = what->low;
    evaluation.seconds_high = what->high;
  }
  sink.put(sink.context, &evaluation);
}

/* The interface. */

/* What `options:` of a pipeline may hold. The host checks the pipeline against this JSON Schema and fills the defaults
 * in before it calls create, which therefore finds every option, with the right type. */
static kgrpo_str options_schema(void) {
  return KGRPO_LITERAL(
      "{\"title\": \"evaluator_c\", \"type\": \"object\", \"additionalProperties\": false, \"properties\": {"
      "\"compiler\": {\"title\": \"compiler\", \"type\": \"string\", \"minLength\": 1, \"maxLength\": 255,"
      "  \"default\": \"cc\", \"description\": \"Called with -O2.\"},"
      "\"seconds\": {\"title\": \"seconds\", \"type\": \"number\", \"exclusiveMinimum\": 0, \"default\": 10,"
      "  \"description\": \"How long a kernel's process may take.\"}}}");
}

static void keep_compiler(void* context, kgrpo_str text) {
  kgrpo_evaluator* self = context;
  snprintf(self->compiler, sizeof self->compiler, "%.*s", (int)text.size, text.data);
}

/* Makes an instance, or returns an error, which the caller releases. *out is written on success only. */
static kgrpo_error* create(const kgrpo_host* host, kgrpo_str options, kgrpo_evaluator** out) {
  kgrpo_evaluator made = {host, host->get_interface(host->context, KGRPO_LITERAL(KGRPO_HOST_INTERFACE)), "", 0};
  const kgrpo_options_interface* read = host->get_interface(host->context, KGRPO_LITERAL(KGRPO_OPTIONS_INTERFACE));
  kgrpo_error* error = read->number(host->context, options, KGRPO_LITERAL("seconds"), &made.seconds);
  if (error == NULL) {
    const kgrpo_text_sink sink = {&made, keep_compiler};
    error = read->text(host->context, options, KGRPO_LITERAL("compiler"), sink);
  }
  if (error != NULL) return error;
  kgrpo_evaluator* evaluator = malloc(sizeof *evaluator);
  if (evaluator == NULL) return fail(&made, KGRPO_ERROR_INTERNAL, "out of memory", "");
  *evaluator = made;
  *out = evaluator;
  return NULL;
}

/* Whoever allocates frees. free takes NULL, as destroy must. */
static void destroy(kgrpo_evaluator* self) {
  free(self);
}

static void close_problem(kgrpo_evaluator* self, kgrpo_problem* problem) {
  (void)self;
  if (problem == NULL) return;
  free(problem->name);
  free(problem->source);
  free(problem);
}

/* A problem's name is its folder's, its source the file reference.c. */
static kgrpo_error* open_problem(kgrpo_evaluator* self, kgrpo_str directory, kgrpo_problem** out) {
  while (directory.size > 1 && directory.data[directory.size - 1] == '/') --directory.size;
  size_t begin = directory.size;
  while (begin > 0 && directory.data[begin - 1] != '/') --begin;
  char folder[PATH_SIZE];
  snprintf(folder, sizeof folder, "%.*s", (int)directory.size, directory.data);
  kgrpo_problem* problem = calloc(1, sizeof *problem);
  if (problem == NULL) return fail(self, KGRPO_ERROR_INTERNAL, "out of memory", "");
  size_t size = 0;
  problem->name = strdup(folder + begin);
  problem->source = read_file(folder, "reference.c", &size);
  if (problem->name == NULL || problem->source == NULL || size == 0) {
    close_problem(self, problem);
    return fail(self, KGRPO_ERROR_NOT_FOUND, folder, "there is no reference kernel, reference.c");
  }
  problem->info.struct_size = sizeof problem->info;
  problem->info.name = problem->info.title = text_of(problem->name);
  problem->info.split = KGRPO_LITERAL("train");
  problem->info.signature = KGRPO_LITERAL("void kernel(const float* x, float* y, int n);");
  problem->info.task = KGRPO_LITERAL("Compute what the reference does, for n numbers x in [-1, 1).");
  problem->info.source = (kgrpo_str){problem->source, size};
  *out = problem;
  return NULL;
}

static const kgrpo_problem_info* problem_info(const kgrpo_problem* problem) {
  return &problem->info;
}

/* Whatever a kernel does is a verdict; an error means that evaluating is impossible. Called from several threads at
 * once. The reference kernel is evaluated as any other: request->reference needs no attention. */
static kgrpo_error* evaluate(kgrpo_evaluator* self, kgrpo_problem* problem, const kgrpo_evaluate_request* request,
                             kgrpo_evaluation_sink sink) {
  found what = {0};
  kgrpo_error* error = judge(self, problem, request->source, request->seed, &what);
  if (error == NULL) put(&what, sink);
  return error;
}

static kgrpo_str describe(const kgrpo_evaluator* self) {
  (void)self;
  return KGRPO_LITERAL("C functions, compiled with -O2, timed on this CPU; no sandbox");
}

/* Its functions in the order of the header; NULL: no further interfaces. */
static const kgrpo_evaluator_interface evaluator_interface = {sizeof(kgrpo_evaluator_interface),
                                                              options_schema,
                                                              create,
                                                              destroy,
                                                              open_problem,
                                                              close_problem,
                                                              problem_info,
                                                              evaluate,
                                                              describe,
                                                              NULL};

/* The host asks for interfaces by id; NULL is "not offered". */
static const void* get_interface(kgrpo_str id) {
  const kgrpo_str ours = KGRPO_LITERAL(KGRPO_EVALUATOR_INTERFACE);
  return id.size == ours.size && memcmp(id.data, ours.data, id.size) == 0 ? &evaluator_interface : NULL;
}

/* The one symbol that is exported. A pipeline names the plugin, and the file, as here: evaluator_c. */
const kgrpo_plugin* kgrpo_plugin_entry(void) {
#define TEXT(literal) \
  { literal, sizeof(literal) - 1 }
  static const kgrpo_plugin plugin = {sizeof(kgrpo_plugin), KGRPO_ABI_MAJOR,
                                      KGRPO_ABI_MINOR,      TEXT("evaluator_c"),
                                      TEXT("0.1.0"),        TEXT("judges C functions on the CPU, in plain C"),
                                      get_interface};
  return &plugin;
}
