"""What misbehaves, and how: candidates, oracles, programs and clients of the service, each in every way of a table.

Used by boundary.py and bench/serve_soak.py. The kernels and oracles are for the problem tests/evaluator/problems/affine."""

AFFINE = """__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  %s
}
"""
MAP = "if (i < n) out[i] = 2.0f * x[i] + y[i];"
LAUNCH = """extern "C" void launch(const float* x, const float* y, float* out, int n) {
  %s
  k<<<(n + 255) / 256, 256>>>(x, y, out, n);
}
"""
C = 'extern "C" { void _exit(int); void abort(); int kill(int, int); int getpid(); long write(int, const void*, unsigned long); int usleep(unsigned); int fork(); void* malloc(unsigned long); void* memset(void*, int, unsigned long); int puts(const char*); int close(int); int raise(int); }\n'


def honest(number=0):
    return AFFINE % MAP + LAUNCH % "" + "// %d\n" % number


def host(code):
    return AFFINE % MAP + C + LAUNCH % code


def device(code, before=""):
    return before + AFFINE % code + LAUNCH % ""


CANDIDATES = {
    "exit 0": host("_exit(0);"),
    "exit 125": host("_exit(125);"),
    "exit 255": host("_exit(255);"),
    "abort": host("abort();"),
    "segfault": host("*(volatile int*)8 = 1;"),
    "divide by zero": host("volatile int z = 0; z = 7 / z;"),
    "kill itself": host("kill(getpid(), 9);"),
    "stop itself": host("raise(19);"),
    "fork": host("for (;;) fork();"),
    "loop": host("for (volatile int i = 0;; ++i) {}"),
    "sleep": host("for (;;) usleep(1000000);"),
    "recursion": 'extern "C" int deep(volatile int* at) { volatile int own[1024]; own[0] = *at; return deep(own) + own[1]; }\n'
                 + host("volatile int z = 0; deep(&z);"),
    "flood of output": host('for (int i = 0; i < 10000000; ++i) puts("a line of a flood of lines");'),
    "memory": host("for (;;) memset(malloc(1ul << 28), 1, 1ul << 28);"),
    "closed wire": host("for (int i = 0; i < 64; ++i) close(i);"),
    "garbage on the wire": host("static char b[65536]; memset(b, 0xA5, sizeof b); for (int i = 3; i < 10; ++i) write(i, b, sizeof b);"),
    "a lie on the wire": host("unsigned long m[6] = {3, 0, 0, 0, 0, 0}; for (int i = 3; i < 10; ++i) write(i, m, 48);"),
    "huge message": host("unsigned long m[6] = {4, ~0ul, ~0ul, ~0ul, ~0ul, ~0ul}; for (int i = 3; i < 10; ++i) write(i, m, 48);"),
    "reads no answers": host("unsigned long m[6] = {8, (unsigned long)out, 4ul * n, 0, 0, 0}; for (;;) write(3, m, 40);"),
    "half a request": host("unsigned long m[6] = {}; write(3, m, 20); for (;;) usleep(1000000);"),
    "endless copies": host("for (;;) cudaMemcpyAsync(out + n / 2, out, n / 2 * 4, cudaMemcpyDeviceToDevice);"),
    "large object": "static const char big[40 << 20] = {1};\n" + host("puts(big);"),
    "constructor": 'extern "C" void _exit(int);\nstruct Early { Early() { _exit(7); } } early;\n' + honest(),
    "assembly": 'asm(".section .nv_fatbin,\\"a\\"\\n.long 0x12345678\\n.fill 64,1,7\\n.text\\n");\n' + honest(),
    "forged report": '#pragma message("ptxas info    : Used 1 registers")\n#pragma message("sandbox_launcher: cannot run nvcc")\n' + honest(),
    "32 GB array": device("big[n] = 1; " + MAP, "__device__ char big[34359738368ull];\n"),
    "4 M registers": device(" ".join('asm volatile("{ .reg .b64 big%d<999999>; }");' % i for i in range(4)) + MAP),
    "endless kernel": device("while (true) { if (*(volatile const float*)x > 1e30f) break; }"),
    "out of bounds": device("out[n + (1 << 24) + i] = 1; " + MAP),
    "trap": device("__trap();"),
    "local arrays": device("volatile char own[400 * 1024]; own[n] = 1; " + MAP),
    "template bomb": "template <int N> struct T { static const long v = T<N - 1>::v + T<N - 2>::v; };\n"
                     "template <> struct T<0> { static const long v = 0; };\ntemplate <> struct T<1> { static const long v = 1; };\n"
                     "template <int A, int B> struct U { static const long v = U<A - 1, B>::v + U<A, B - 1>::v; };\n"
                     "template <int B> struct U<0, B> { static const long v = 1; };\ntemplate <int A> struct U<A, 0> { static const long v = 1; };\n"
                     "const long huge = U<700, 700>::v;\n" + honest(),
    "device printf": device('for (int j = 0; j < 1000; ++j) printf("a line of %d\\n", j); ' + MAP, "#include <cstdio>\n"),
    "warnings": "".join('#pragma message("%d")\n' % i for i in range(20000)) + honest(),
    "long name": honest().replace("k(const", "k" * 100000 + "(const").replace("k<<<(n + 255) / 256", "k" * 100000 + "<<<0"),
    "errors": "".join("int e%d = nothing%d;\n" % (i, i) for i in range(5000)),
    "a megabyte": "// " + "x" * (1 << 20) + "\n" + honest(),
    "nul and not UTF-8": "// \0 \udc80\n" + honest(),
    "include": '#include "/etc/passwd"\n' + honest(),
    "nothing": "",
}

ORACLE = """#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <unistd.h>
extern "C" void oracle(const double* x, const double* y, double* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = 2 * x[i] + y[i];
  %s
}
"""
ORACLES = {
    "exit": "exit(0);",
    "_exit": "_exit(100);",
    "abort": "abort();",
    "segfault": "*(volatile int*)8 = 1;",
    "kill": "kill(getpid(), 9);",
    "loop": "for (volatile int i = 0;; ++i) {}",
    "throw": 'throw std::runtime_error("no");',
    "past its tensor": "volatile double v = x[n]; v = v + 1;",
    "before its output": "out[-1] = 1;",
    "output": 'for (int i = 0; i < 1000000; ++i) puts("a line");',
    "words": "static char b[65536]; memset(b, 65, sizeof b); for (int i = 0; i < 1000; ++i) if (write(3, b, sizeof b) < 0) break;",
}

# Ways of tests/programs/faulty.py, for a reward ("score") and a coder ("implement").
PROGRAMS = ["garbage", "array", "both", "not_utf8", "too_much", "deep", "twice", "exits", "forks", "says_error", "never"]

HEAD = b"POST /v1/evaluations HTTP/1.1\r\nHost: x\r\n"
CLIENTS = {
    "leaves at once": b"",
    "half a line": b"POST /v1/eval",
    "garbage": b"\x16\x03\x01\x02\x00\x01garbage\r\n\r\n",
    "no JSON": HEAD + b"Content-Length: 5\r\n\r\n{{{{{",
    "deep": HEAD + b"Content-Length: 200000\r\n\r\n" + b"[" * 200000,
    "wide": HEAD + b"Content-Length: 400001\r\n\r\n[" + b"1," * 200000,
    "short body": HEAD + b"Content-Length: 100000\r\n\r\n{",
    "too long": HEAD + b"Content-Length: 99999999999\r\n\r\n",
    "two lengths": HEAD + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n{{{{{",
    "both lengths": HEAD + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "bad chunk": HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n",
    "many headers": b"GET / HTTP/1.1\r\n" + b"X-A: b\r\n" * 20000 + b"\r\n",
    "long path": b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\n\r\n",
    "huge body": HEAD + b"Content-Length: 16000000\r\n\r\n" + b'{"problem": "affine", "source": "' + b"x" * 15999960,
    "huge chunks": HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"100000\r\n" + (b"x" * 0x100000 + b"\r\n100000\r\n") * 20,
    "flood of requests": b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n" * 500,
}
