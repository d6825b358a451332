// Access to values, and the errors.
#include "json.h"

Error::~Error() = default;

uint64_t SyntaxError::code() const
{
    return mix(offset, std::char_traits<char>::length(what()));
}

uint64_t TypeError::code() const
{
    return std::char_traits<char>::length(what());
}

const Value &Value::at(const std::string &key) const
{
    const auto *object = std::get_if<Object>(&is);
    if (!object)
        throw TypeError("an object");
    return object->at(key); // std::out_of_range
}

int64_t Value::integer() const
{
    if (const auto *n = std::get_if<int64_t>(&is))
        return *n;
    throw TypeError("an integer");
}

const std::string &Value::text() const
{
    if (const auto *s = std::get_if<std::string>(&is))
        return *s;
    throw TypeError("a text");
}

const Array &Value::array() const
{
    if (const auto *a = std::get_if<Array>(&is))
        return *a;
    throw TypeError("an array");
}

namespace {

struct Hash {
    uint64_t operator()(std::nullptr_t) const { return 1; }
    uint64_t operator()(bool b) const { return 2 + b; }
    uint64_t operator()(int64_t n) const { return mix(5, uint64_t(n)); }
    uint64_t operator()(double d) const { return mix_double(6, d); }
    uint64_t operator()(const std::string &s) const
    {
        uint64_t sum = 7;
        for (char c : s)
            sum = sum * 33 + uint8_t(c);
        return sum;
    }
    uint64_t operator()(const Array &a) const
    {
        uint64_t sum = 8;
        for (const Value &v : a)
            sum = mix(sum, hash(v));
        return sum;
    }
    uint64_t operator()(const Object &o) const
    {
        uint64_t sum = 9;
        for (const auto &[key, value] : o)
            sum = mix(mix(sum, (*this)(key)), hash(value));
        return sum;
    }
};

} // namespace

uint64_t hash(const Value &value)
{
    return std::visit(Hash{}, value.is);
}
