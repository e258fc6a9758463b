#include "config/node.h"

#include "config/hidden_keys.h"

#include <utility>

namespace kgrpo {

Node Node::Scalar(nlohmann::json value, Position at) {
  Node node;
  node.at = std::move(at);
  node.scalar = std::move(value);
  return node;
}

Node Node::Mapping(Position at) {
  Node node;
  node.kind = Kind::kMapping;
  node.at = std::move(at);
  return node;
}

Node Node::FromJson(const nlohmann::ordered_json& json, const Position& at) {
  Node node;
  node.at = at;
  if (json.is_object()) {
    node.kind = Kind::kMapping;
    for (const auto& [key, value] : json.items()) node.members.push_back({key, at, FromJson(value, at)});
  } else if (json.is_array()) {
    node.kind = Kind::kList;
    for (const auto& value : json) node.items.push_back(FromJson(value, at));
  } else {
    node.scalar = nlohmann::json(json);
  }
  return node;
}

const Node::Member* Node::Find(std::string_view key) const {
  for (const Member& member : members) {
    if (member.key == key) return &member;
  }
  return nullptr;
}

Node::Member* Node::Find(std::string_view key) {
  return const_cast<Member*>(static_cast<const Node*>(this)->Find(key));
}

const Node* Node::Get(std::string_view key) const {
  const Member* member = Find(key);
  return member == nullptr ? nullptr : &member->value;
}

Node* Node::Get(std::string_view key) { return const_cast<Node*>(static_cast<const Node*>(this)->Get(key)); }

void Node::Erase(std::string_view key) {
  std::erase_if(members, [&](const Member& member) { return member.key == key; });
}

nlohmann::ordered_json Node::ToJson() const {
  if (IsScalar()) return nlohmann::ordered_json(scalar);
  if (IsList()) {
    auto json = nlohmann::ordered_json::array();
    for (const Node& item : items) json.push_back(item.ToJson());
    return json;
  }
  auto json = nlohmann::ordered_json::object();
  for (const Member& member : members) json[member.key] = member.value.ToJson();
  return json;
}

std::string Describe(const Node& node) {
  if (node.IsMapping()) return "a mapping";
  if (node.IsList()) return "a list";
  if (node.scalar.is_null()) return "nothing";
  if (!node.scalar.is_string()) return node.scalar.dump();
  constexpr size_t kMaxShown = 60;
  std::string text = node.scalar.get<std::string>();
  HideKeys(&text);  // before cutting and escaping, after which a key may not be recognised
  if (text.size() <= kMaxShown) return nlohmann::json(text).dump();
  // Cut between characters, not within one.
  size_t end = kMaxShown;
  while ((static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return nlohmann::json(text.substr(0, end)).dump() + "...";
}

}  // namespace kgrpo
