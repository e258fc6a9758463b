#include "serve/openapi.h"

#include <sstream>

namespace kgrpo::serve {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kOpenApi[] = R"json({
  "openapi": "3.1.0",
  "info": {
    "title": "kgrpo evaluator",
    "version": "1",
    "description": "Judges CUDA kernels: compiles them, checks that they are correct and times them. Started by `kgrpo-host serve`."
  },
  "security": [{}, {"token": []}],
  "paths": {
    "/v1/evaluations": {
      "post": {
        "summary": "Judge one kernel, or a list of them",
        "description": "The body is one evaluation, or {\"evaluations\": [...], \"stream\": false}. A list is answered by {\"evaluations\": [...]} in the order of the request. With \"stream\": true each result is a line of JSON (application/x-ndjson) as soon as it is there, with the \"index\" of its evaluation, and the last line is {\"done\": true}. A client that closes the connection cancels what it asked for. Where everything in a request fails, the answer is the first failure.",
        "requestBody": {"required": true, "content": {"application/json": {
          "schema": {"$ref": "#/components/schemas/EvaluationRequest"},
          "example": {"problem": "softmax_long", "source": "extern \"C\" void launch(...) {...}", "devices": ["h100"], "thoroughness": "quick"}
        }}},
        "responses": {
          "200": {"description": "The results", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Evaluated"}}}},
          "400": {"$ref": "#/components/responses/Error"},
          "404": {"$ref": "#/components/responses/Error"},
          "413": {"$ref": "#/components/responses/Error"},
          "422": {"$ref": "#/components/responses/Error"},
          "429": {"description": "The queue is full: try again after Retry-After seconds, or elsewhere", "headers": {"Retry-After": {"schema": {"type": "integer"}}}, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}},
          "503": {"$ref": "#/components/responses/Error"}
        }
      }
    },
    "/v1/problems": {
      "get": {"summary": "The problems of this service: name and digest of the files", "responses": {"200": {"description": "A list"}}},
      "post": {
        "summary": "Checks a problem sent with its files; returns its digest and what the evaluator reads in it",
        "requestBody": {"required": true, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Problem"}}}},
        "responses": {"200": {"description": "As GET /v1/problems/{name}"}, "422": {"$ref": "#/components/responses/Error"}}
      }
    },
    "/v1/problems/{name}": {
      "get": {
        "summary": "One problem: task, signature, reference source, traits",
        "parameters": [{"name": "name", "in": "path", "required": true, "schema": {"type": "string"}}],
        "responses": {"200": {"description": "The problem"}, "404": {"$ref": "#/components/responses/Error"}}
      }
    },
    "/v1/evaluator": {
      "get": {"summary": "The evaluator: plugin, version, digest, options, devices, labels of its metrics", "responses": {"200": {"description": "The evaluator"}}}
    },
    "/healthz": {
      "get": {"summary": "200 while it takes work, 503 while it drains; needs no token", "security": [], "responses": {"200": {"description": "ok"}, "503": {"description": "draining"}}}
    },
    "/metrics": {
      "get": {"summary": "Counters and histograms for Prometheus", "responses": {"200": {"description": "Text, version 0.0.4"}}}
    },
    "/openapi.json": {
      "get": {"summary": "This description", "responses": {"200": {"description": "OpenAPI 3.1"}}}
    }
  },
  "components": {
    "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
    "responses": {
      "Error": {"description": "What is wrong, where, and what to do", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}}
    },
    "schemas": {
      "Problem": {
        "description": "A problem's name, or an object: with \"sha256\" it is the problem with exactly these files, with \"files\" it need not be known to the service.",
        "oneOf": [
          {"type": "string"},
          {"type": "object", "required": ["name"], "additionalProperties": false, "properties": {
            "name": {"type": "string"},
            "sha256": {"type": "string"},
            "files": {"type": "object", "additionalProperties": {"type": "string"}, "description": "content by file name: problem.yaml, reference.cu"}
          }}
        ]
      },
      "EvaluationRequest": {
        "type": "object", "required": ["problem"], "additionalProperties": false,
        "properties": {
          "problem": {"$ref": "#/components/schemas/Problem"},
          "source": {"type": "string", "description": "The kernel: one CUDA C++ file. Without it the reference alone is judged."},
          "seed": {"type": "integer", "minimum": 0, "default": 0, "description": "Of the secret inputs of a thorough evaluation"},
          "thoroughness": {"enum": ["quick", "thorough"], "default": "quick"},
          "devices": {"type": "array", "items": {"type": "string"}, "minItems": 1, "description": "Names of GET /v1/evaluator; default: its first"},
          "stream": {"type": "boolean", "default": false}
        }
      },
      "Evaluated": {
        "type": "object",
        "properties": {
          "problem": {"type": "string"},
          "results": {"type": "array", "items": {"$ref": "#/components/schemas/Result"}, "description": "One a device, in the order of the request"}
        }
      },
      "Result": {
        "type": "object", "required": ["device"],
        "properties": {
          "device": {"type": "string"},
          "evaluation": {"$ref": "#/components/schemas/Evaluation"},
          "baseline": {"$ref": "#/components/schemas/Evaluation"},
          "speedup": {"type": "number", "description": "evaluation.speedup; only of a correct kernel"},
          "queue_seconds": {"type": "number"},
          "evaluate_seconds": {"type": "number"},
          "error": {"$ref": "#/components/schemas/Error/properties/error"}
        }
      },
      "Evaluation": {
        "type": "object",
        "properties": {
          "compiled": {"type": "boolean"}, "correct": {"type": "boolean"},
          "verdict": {"type": "string", "description": "\"correct\", or what failed: \"wrong\", \"not_compiled\", \"race\", ..."},
          "seconds": {"type": "number"}, "seconds_low": {"type": "number"}, "seconds_high": {"type": "number"},
          "modelled": {"type": "boolean", "description": "no device ran: the time is a model's"},
          "time_source": {"type": "string"}, "diagnosis": {"type": "string"},
          "speedup": {"type": "number"}, "speedup_low": {"type": "number"}, "speedup_high": {"type": "number"},
          "metrics": {"type": "object", "additionalProperties": {"type": ["number", "null"]}},
          "remarks": {"type": "array", "items": {"type": "object"}}
        }
      },
      "Error": {
        "type": "object",
        "properties": {"error": {"type": "object", "properties": {"code": {"type": "string"}, "message": {"type": "string"}}}}
      }
    }
  }
})json";

std::string Escaped(const std::string& text) {
  std::string html;
  for (const char c : text) {
    if (c == '<')
      html += "&lt;";
    else if (c == '&')
      html += "&amp;";
    else
      html += c;
  }
  return html;
}

std::string Upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

std::string MakePage() {
  const Json& api = OpenApi();
  std::ostringstream html;
  html << "<!doctype html><html lang=en><meta charset=utf-8><title>" << Escaped(api["info"]["title"])
       << "</title><style>body{font:16px/1.5 system-ui,sans-serif;max-width:60em;margin:2em auto;padding:0 1em}"
          "pre{background:#f4f4f4;padding:.8em;overflow:auto;font-size:13px}h2{font:600 17px "
          "monospace;margin-top:2em}</style><h1>"
       << Escaped(api["info"]["title"]) << "</h1><p>" << Escaped(api["info"]["description"])
       << " <a href=openapi.json>openapi.json</a> describes it for programs.</p>";
  for (const auto& [path, methods] : api["paths"].items()) {
    for (const auto& [method, operation] : methods.items()) {
      html << "<h2>" << Upper(method) << " " << Escaped(path) << "</h2><p>" << Escaped(operation["summary"]) << ".";
      if (operation.contains("description")) html << "</p><p>" << Escaped(operation["description"]);
      html << "</p>";
      if (!operation.contains("requestBody")) continue;
      const Json& content = operation["requestBody"]["content"]["application/json"];
      if (content.contains("example")) html << "<pre>" << Escaped(content["example"].dump(2)) << "</pre>";
    }
  }
  html << "<h1>Schemas</h1>";
  for (const auto& [name, schema] : api["components"]["schemas"].items())
    html << "<h2>" << Escaped(name) << "</h2><pre>" << Escaped(schema.dump(2)) << "</pre>";
  return html.str() + "</html>\n";
}

}  // namespace

const Json& OpenApi() {
  static const Json api = Json::parse(kOpenApi);
  return api;
}

const std::string& OpenApiPage() {
  static const std::string page = MakePage();
  return page;
}

}  // namespace kgrpo::serve
