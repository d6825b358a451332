// JSON as C++ programs have it: values that own their parts, and exceptions for what is wrong.
#ifndef JSON_H
#define JSON_H

#include "kernel.h"
#include <map>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

struct Value;
using Array = std::vector<Value>;
using Object = std::map<std::string, Value>;

struct Value {
    std::variant<std::nullptr_t, bool, int64_t, double, std::string, Array, Object> is = nullptr;
    const Value &at(const std::string &key) const;
    int64_t integer() const;
    const std::string &text() const;
    const Array &array() const;
};

// values.cpp
class Error : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
    ~Error() override;
    virtual uint64_t code() const = 0;
};

class SyntaxError : public Error {
public:
    SyntaxError(const char *what, size_t place) : Error(what), offset(place) {}
    uint64_t code() const override;

private:
    size_t offset;
};

class TypeError : public Error {
public:
    explicit TypeError(const std::string &wanted) : Error("not " + wanted) {}
    uint64_t code() const override;
};

uint64_t hash(const Value &value);

// parser.cpp
Value parse(const std::string &text);

// writer.cpp
std::string write(const Value &value);

#endif
