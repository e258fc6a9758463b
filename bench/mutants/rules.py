"""The mutation rules of mutants.py, as data: (name, kind, pattern, replacement).

A pattern is searched in a line of code without its comment; each match is a mutant, with that match replaced. Most are
faults that people and models write into kernels; some change what only few inputs reach.
"""

# An index without brackets in it, and a number.
_FLAT = r"[^\[\]();,]+"
_NUMBER = r"\d+"

RULES = [
    # ---- synchronisation ----
    ("barrier_removed", "barrier", r"__syncthreads\(\);", ";"),
    ("barrier_of_the_warp", "barrier", r"__syncthreads\(\)", "__syncwarp()"),
    ("warp_barrier_removed", "barrier", r"__syncwarp\([^;]*\);", ";"),
    ("named_barrier_removed", "barrier", r'asm volatile\("bar(?:rier)?\.sync[^;]*;[^;]*;', ";"),
    ("tile_sync_removed", "barrier", r"\b\w+\.sync\(\);", ";"),
    ("grid_split_lost", "barrier", r"cudaGridDependencySynchronize\(\);", ";"),
    ("fence_removed", "fence", r"__threadfence(?:_block|_system)?\(\);", ";"),
    ("fence_of_the_block", "fence", r"__threadfence\(\)", "__threadfence_block()"),
    ("release_relaxed", "fence", r"memory_order_release|(?<=st)\.release|(?<=add)\.release|(?<=exch)\.release", "memory_order_relaxed"),
    ("acquire_relaxed", "fence", r"memory_order_acquire", "memory_order_relaxed"),
    ("volatile_dropped", "fence", r"(?<!asm )\bvolatile (?=\w)", ""),
    ("async_wait_weakened", "async", r"wait_group \d", "wait_group 7"),
    ("async_wait_of_others", "async", r"__pipeline_wait_prior\(\d\)", "__pipeline_wait_prior(7)"),
    ("async_commit_removed", "async", r'asm volatile\("cp\.async\.commit_group[^;]*;[^;]*;', ";"),
    ("phase_stuck", "stale", r" \^= 1\b", " ^= 0"),
    ("phase_of_the_other", "stale", r"([^&]) & 1\b", r"\1 & 0"),
    # ---- atomics: unordered accumulation ----
    ("atomic_lost", "atomic", r"atomicAdd\(&([^,]+), (.+?)\);", r"\1 += \2;"),
    ("atomic_of_the_block", "atomic", r"atomicAdd\((?=&?\w)", "atomicAdd_block("),
    ("atomic_max_lost", "atomic", r"atomic(?:Max|Min)\(&([^,]+), (.+?)\);", r"\1 = \2;"),
    # ---- comparisons and guards ----
    ("lt_to_le", "comparison", r"(?<=[\w\])]) < (?=[\w(])", " <= "),
    ("le_to_lt", "comparison", r" <= ", " < "),
    ("gt_to_ge", "comparison", r"(?<=[\w\])]) > (?=[\w(])", " >= "),
    ("ge_to_gt", "comparison", r" >= ", " > "),
    ("eq_to_ne", "comparison", r" == ", " != "),
    ("and_to_or", "comparison", r" && ", " || "),
    ("or_to_and", "comparison", r" \|\| ", " && "),
    ("guard_removed", "tail", r"if \(.*\) (?:return|continue|break);", ";"),
    ("choice_swapped", "comparison", r"\? ([^:;?]+) : ([^:;,)?]+)", r"? \2 : \1"),
    ("choice_made", "tail", r"(\w+(?: [<>=!]+ \w+)) \? ([^:;?]+) : [^:;,)?]+", r"\2"),
    # ---- offsets ----
    ("index_up", "offset", rf"\[({_FLAT})\](?! = \{{|;)", r"[\1 + 1]"),
    ("index_down", "offset", rf"\[({_FLAT})\](?! = \{{|;)", r"[\1 - 1]"),
    ("index_first", "offset", rf"\[({_FLAT})\](?! = \{{|;)", "[0]"),
    ("plus_to_minus", "offset", r"(?<=[\w\])]) \+ (?=[\w(])", " - "),
    ("minus_to_plus", "offset", r"(?<=[\w\])]) - (?=[\w(])", " + "),
    ("loop_starts_late", "offset", r"for \((\w+ \w+) = ([^;]+);", r"for (\1 = \2 + 1;"),
    ("loop_ends_early", "tail", r"; (\w+) < ([^;<]+); ", r"; \1 < \2 - 1; "),
    # ---- strides ----
    ("stride_doubled", "stride", r"(\w+) \+= ([^;)]+)\) ", r"\1 += 2 * (\2)) "),
    ("stride_of_one", "stride", r"(\w+) \+= ([^;)]+)\) ", r"\1 += 1) "),
    ("times_to_plus", "stride", r"(?<=[\w\])]) \* (?=[\w(])", " + "),
    ("divisor_up", "stride", rf" / ({_NUMBER})\b(?!\.)", r" / (\1 + 1)"),
    ("modulus_dropped", "stride", r" % \w+", ""),
    ("thread_x_to_y", "stride", r"threadIdx\.x", "threadIdx.y"),
    ("thread_y_to_x", "stride", r"threadIdx\.y", "threadIdx.x"),
    ("block_x_to_y", "stride", r"blockIdx\.x", "blockIdx.y"),
    ("block_for_grid", "stride", r"blockDim\.x", "gridDim.x"),
    ("distance_halved", "stride", r"= 16;", "= 8;"),
    # ---- identities and accumulation ----
    ("zero_to_one", "identity", r"= 0(?:\.0?f?|f)?;", "= 1;"),
    ("lowest_to_zero", "identity", r"= -(?:INFINITY|FLT_MAX|\d[\d.]*e\d+f?)|= kLowest\b", "= 0.0f"),
    ("max_to_min", "identity", r"\bfmaxf\(", "fminf("),
    ("min_to_max", "identity", r"\bmin\(", "max("),
    ("accumulation_lost", "identity", r"(?<=\w|\]) \+= (?=[^;)]+;)", " = "),
    ("accumulation_negated", "identity", r"(?<=\w|\]) \+= (?=[^;)]+;)", " -= "),
    ("shift_dropped", "identity", r"expf\((\w+) - \w+\)", r"expf(\1)"),
    ("epsilon_dropped", "identity", r" \+ (?:1e-\d+f?|k?[Ee]psilon)\b", ""),
    ("fold_of_a_part", "identity", r"0x[fF]{8}u?", "0x7fffffffu"),
    # ---- values that nobody set ----
    ("initialiser_removed", "uninitialised", r"\b(float|int|double|unsigned) (\w+) = [^;,(]+;(?! )", r"\1 \2;"),
    ("store_removed", "uninitialised", r"^\s*\w+(?:\[[^;=]*\])+ = [^;]+;", ";"),
    ("clear_removed", "uninitialised", r"cudaMemset(?:Async)?\([^;]+;", ";"),
    ("launch_removed", "uninitialised", r"^\s*\w+(?:<[^<>;]*>)?<<<[^;]+;", ";"),
    # ---- narrower types ----
    ("value_of_16_bits", "narrow", r"\bfloat (\w+) = ([^;{]+);", r"float \1 = __uint_as_float(__float_as_uint(\2) & 0xffff0000u);"),
    ("index_of_16_bits", "narrow", r"\bconst int (\w+) = ", r"const short \1 = "),
    ("index_of_8_bits", "narrow", r"\bconst int (\w+) = ", r"const signed char \1 = "),
    ("double_to_float", "narrow", r"\bdouble\b", "float"),
    # ---- tails and sizes ----
    ("ceiling_to_floor", "tail", rf"\((\w+) \+ {_NUMBER}\) / (\w+)", r"\1 / \2"),
    ("block_short", "tail", r"<<<([^,<>]+), ", r"<<<(\1) - 1, "),
    ("threads_halved", "tail", r"<<<([^<>]+), (\w+)>>>", r"<<<\1, (\2) / 2>>>"),
    ("size_short", "tail", r", (n|rows|cols|count)\)", r", \1 - 1)"),
    ("vector_of_any_size", "tail", r" % [48] == 0", " % 2 == 0"),
]
